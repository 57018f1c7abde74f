/**
 * One run: a scheme, a scenario and a seed give a result. The world sends requests to pods, applies
 * the plan of faults and lets the recorder and the checker look on.
 */
import type { Limit } from "../src/core/limit.ts";
import type { InstantUs, Tokens } from "../src/core/units.ts";
import { allowanceOf } from "./allowance.ts";
import { type BoundTerms, boundOf } from "./bound.ts";
import { Checker } from "./checker.ts";
import { EventLoop } from "./event-loop.ts";
import { applyFault } from "./fault-injector.ts";
import type { Fault } from "./fault-plan.ts";
import { Fleet } from "./fleet.ts";
import { Network } from "./network.ts";
import { Prng } from "./prng.ts";
import { Recorder } from "./recorder.ts";
import { resultOf } from "./result-of.ts";
import { type RunEvent, type RunResult, SERIES_STEP_US } from "./run-result.ts";
import type { Scenario } from "./scenario.ts";
import type { Answer, Scheme, SchemeRun } from "./scheme.ts";
import { StoreHost } from "./store-host.ts";
import { Trace } from "./trace.ts";
import { ANY_POD, type Arrival, type WorkloadRun } from "./workload.ts";

/** Command timeout of pods, as in the configuration's default. */
export const COMMAND_TIMEOUT_US = 50_000;

/** Virtual time after the end in which held requests may still be answered. */
const AFTERMATH_US = 1_000_000;

export interface RunOptions {
  /** In place of the scenario's own plan, e.g. a smaller one. */
  readonly faults?: readonly Fault[];
  readonly clocks?: ClockShift;
}

/**
 * Clocks start this much later; must make no difference (I8). Pods' clocks only by some minutes: an
 * instant with a fraction of a microsecond is rounded otherwise when it is much larger.
 */
export interface ClockShift {
  readonly podsUs: number;
  readonly storeUs: number;
}

const NO_SHIFT: ClockShift = { podsUs: 0, storeUs: 0 };

/** Runs a scenario to its end. The same scenario, scheme and seed give the same result. */
export async function runScenario(
  scenario: Scenario,
  scheme: Scheme,
  seed: number,
  options: RunOptions = {},
): Promise<RunResult> {
  const startedMs = performance.now();
  const random = new Prng(seed);
  const checker = new Checker();
  const run = await scheme.start({
    limits: scenario.limits,
    random: random.fork("scheme"),
    membership: scenario.terms.membership,
    podsFactor: scenario.terms.podsFactor,
    observer: checker,
  });
  try {
    const world = new World(scenario, seed, run, checker, options.clocks ?? NO_SHIFT);
    await world.play(options.faults ?? planOf(scenario, seed));
    return resultOf(world, scheme.name, performance.now() - startedMs);
  } finally {
    await run.close?.();
  }
}

/** The plan of faults of one seed, in order of time. */
export function planOf(scenario: Scenario, seed: number): readonly Fault[] {
  const faults = scenario.faults(new Prng(seed).fork("faults"));
  return [...faults].sort((a, b) => a.atUs - b.atUs);
}

export class World {
  readonly scenario: Scenario;
  readonly seed: number;
  readonly run: SchemeRun;
  readonly loop: EventLoop = new EventLoop();
  readonly trace: Trace = new Trace();
  readonly recorder: Recorder;
  readonly checker: Checker;
  readonly network: Network;
  readonly storeHost: StoreHost;
  readonly fleet: Fleet;
  /** In force for pods that join from now on. */
  limits: readonly Limit[];
  readonly #workload: WorkloadRun;
  readonly #allowances: number[];
  /** Bounds are asked for at every admission in debt, and take some working out. */
  readonly #bounds: Map<Limit, { pods: number; tokens: Tokens }> = new Map();

  constructor(
    scenario: Scenario,
    seed: number,
    run: SchemeRun,
    checker: Checker,
    clocks: ClockShift,
  ) {
    const random = new Prng(seed);
    const { loop, trace } = this;
    this.scenario = scenario;
    this.seed = seed;
    this.run = run;
    this.checker = checker;
    this.limits = scenario.limits;
    this.recorder = new Recorder(scenario.limits, scenario.durationUs, scenario.measureFromUs);
    this.network = new Network(loop, random.fork("network"), scenario.link);
    this.storeHost = new StoreHost(loop, run.store);
    this.storeHost.stepClock(clocks.storeUs);
    const { network, storeHost, recorder } = this;
    this.fleet = new Fleet({
      loop,
      network,
      storeHost,
      run,
      recorder,
      trace,
      random,
      clockShiftUs: clocks.podsUs,
      limits: () => this.limits,
      left: (life) => checker.left(life),
    });
    this.#allowances = scenario.limits.map(() => 0);
    this.#workload = scenario.workload.start({
      random: random.fork("workload"),
      limits: scenario.limits,
      durationUs: scenario.durationUs,
      pods: scenario.pods,
    });
    checker.watch(() => loop.nowUs, scenario.terms.podsFactor);
  }

  async play(faults: readonly Fault[]): Promise<void> {
    const { scenario, loop, fleet } = this;
    for (let i = 0; i < scenario.pods; i += 1) fleet.join();
    for (const fault of faults) {
      // A failover needs a copy of the state that it will bring back.
      const fromUs = fault.kind === "store-failover" ? fault.atUs - fault.lagUs : fault.atUs;
      loop.at(fromUs, () => applyFault(this, fault));
    }
    for (const mark of scenario.marks) loop.at(mark.atUs, () => this.note("mark", mark.name));
    if (scenario.autoscaler !== undefined) {
      fleet.autoscale(scenario.autoscaler, () => this.recorder.requests);
    }
    this.#sample(1);
    this.#pull();
    await loop.run(scenario.durationUs + AFTERMATH_US);
  }

  note(kind: RunEvent["kind"], text: string): void {
    this.recorder.events.push({ atUs: this.loop.nowUs, kind, text });
  }

  /** Adds to what I1 lets pass, for all limits. */
  allowFault(fault: Fault): void {
    const membership = this.scenario.terms.membership;
    for (const [i, limit] of this.limits.entries()) {
      this.#allow(i, allowanceOf(fault, limit, { ...this.boundTerms(), membership }));
    }
  }

  /** A pod dies; what it had not reported is lost to the accounts. */
  crash(pod: number): void {
    const lost = this.fleet.crash(pod);
    for (let i = 0; i < this.#allowances.length; i += 1) this.#allow(i, lost);
  }

  boundTerms(): BoundTerms {
    const { link, terms } = this.scenario;
    return {
      pods: this.fleet.largest,
      rttUs: 2 * (link.baseUs + link.jitterUs),
      podsFactor: terms.podsFactor,
      loss: link.loss,
      commandTimeoutUs: COMMAND_TIMEOUT_US,
    };
  }

  /** The bound of a limit with the largest fleet so far. */
  boundOf(limit: Limit): Tokens {
    const pods = this.fleet.largest;
    const known = this.#bounds.get(limit);
    if (known?.pods === pods) return known.tokens;
    const tokens = boundOf(limit, this.boundTerms());
    this.#bounds.set(limit, { pods, tokens });
    return tokens;
  }

  /** What I1 allows now: the bound and what the faults so far explain. */
  allowed(limit: number): number {
    const shape = this.recorder.limits[limit]?.limit;
    if (shape === undefined) return 0;
    return this.boundOf(shape) + (this.#allowances[limit] ?? 0);
  }

  #allow(limit: number, tokens: number): void {
    this.#allowances[limit] = (this.#allowances[limit] ?? 0) + tokens;
  }

  #pull(): void {
    const arrival = this.#workload.next();
    if (arrival === undefined || arrival.atUs >= this.scenario.durationUs) return;
    this.loop.at(arrival.atUs, () => {
      this.#request(arrival);
      this.#pull();
    });
  }

  #request(arrival: Arrival): void {
    const number = this.fleet.route(arrival.pod);
    const { checks, client } = arrival;
    const arrivedUs = this.loop.nowUs;
    const ideal = this.recorder.arrived(arrivedUs, number, client, checks);
    const pod = number === ANY_POD ? undefined : this.fleet.pods.get(number);
    const life = `${number}.${pod?.host.incarnation ?? 0}`;
    const request = { pod: number, life, client, checks, ideal };
    if (pod === undefined) {
      this.#answered(arrival, request, arrivedUs, { allowed: false, retryAfterUs: 0 });
      return;
    }
    pod.open += 1;
    let answered = false;
    pod.host.input(() =>
      pod.node.request(checks, (answer) => {
        if (answered) this.checker.violated("answer", `pod ${number} answered a request twice`);
        if (answered || pod.host.dead) return;
        answered = true;
        pod.open -= 1;
        this.#answered(arrival, request, arrivedUs, answer);
      }),
    );
  }

  #answered(
    arrival: Arrival,
    request: Parameters<Recorder["answered"]>[1] & { readonly life: string },
    arrivedUs: InstantUs,
    answer: Answer,
  ): void {
    const nowUs = this.loop.nowUs;
    if (nowUs > arrivedUs) this.recorder.heldUs.push(nowUs - arrivedUs);
    this.trace.add(nowUs, request.pod, answer.allowed ? 1 : 0);
    this.recorder.answered(nowUs, request, answer.allowed, ({ limit: index, key, cost }, debt) => {
      const limit = this.limits[index];
      if (limit === undefined) return;
      const allowed = debt > 0 ? this.allowed(index) : 0;
      const { isFallback = false } = answer;
      this.checker.admitted({ pod: request.life, limit, key, cost, debt, allowed, isFallback });
    });
    const next = this.#workload.answered?.(nowUs, arrival, answer);
    if (next === undefined || next.atUs >= this.scenario.durationUs) return;
    this.loop.at(next.atUs, () => this.#request(next));
  }

  #sample(step: number): void {
    if (step > this.recorder.steps) return;
    this.loop.at(step * SERIES_STEP_US, () => {
      const { recorder, fleet } = this;
      recorder.sample(this.loop.nowUs, fleet.serving.length);
      for (const [number, pod] of fleet.pods) {
        const share = pod.node.inspect?.().share;
        const record = recorder.pods.get(number);
        if (share === undefined || record === undefined) continue;
        while (record.shareSeries.length < step - 1) record.shareSeries.push(0);
        record.shareSeries[step - 1] = share;
      }
      this.#sample(step + 1);
    });
  }
}
