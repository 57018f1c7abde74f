/**
 * Open-loop traffic as a sum of streams: each has a rate that may change with time, and says for
 * every request where it goes and what it asks for. Most workloads are a few lines of this.
 */
import type { DurationUs, InstantUs, Tokens } from "../src/core/units.ts";
import type { Prng } from "./prng.ts";
import type { SimCheck } from "./scheme.ts";
import { ANY_POD, type Arrival, type Workload, type WorkloadRun } from "./workload.ts";

export interface Stream {
  /** Requests per second; a function of the time since the start for rates that change. */
  readonly perSecond: number | ((atUs: InstantUs) => number);
  /** The largest value of that function; needed to draw Poisson arrivals by thinning. */
  readonly perSecondMax?: number;
  /** `poisson` unless said; `even` spaces requests alike, and needs a constant rate. */
  readonly spacing?: "poisson" | "even";
  readonly pod?: (random: Prng, atUs: InstantUs) => number;
  readonly checks?: (random: Prng, atUs: InstantUs) => readonly SimCheck[];
  /** 1 and up to compare clients; 0 for nobody. */
  readonly client?: number;
}

/** One check of limit 0 with cost 1, under one key. */
export const ONE_CHECK: readonly SimCheck[] = [{ limit: 0, key: "k", cost: 1 }];

export function traffic(summary: string, streams: readonly Stream[]): Workload {
  return {
    summary,
    start({ random }) {
      const runs = streams.map((stream, i) => new StreamRun(stream, random.fork(`stream ${i}`)));
      return merged(runs);
    },
  };
}

/** Takes turns by time; the first stream wins a tie. */
function merged(runs: readonly StreamRun[]): WorkloadRun {
  return {
    next() {
      let first: StreamRun | undefined;
      for (const run of runs) {
        if (run.dueUs < (first?.dueUs ?? Number.POSITIVE_INFINITY)) first = run;
      }
      return first?.take();
    },
  };
}

/** Draws in vain beyond this many mean that a rate has fallen to nothing for good. */
const THINNED_MAX = 1_000_000;

class StreamRun {
  readonly #stream: Stream;
  readonly #random: Prng;
  readonly #most: number;
  #exactUs = 0;
  /** When the next request is due; Infinity for never. */
  dueUs: InstantUs = 0;

  constructor(stream: Stream, random: Prng) {
    this.#stream = stream;
    this.#random = random;
    const { perSecond, perSecondMax } = stream;
    this.#most = typeof perSecond === "number" ? perSecond : (perSecondMax ?? 0);
    if (!(this.#most > 0)) throw new Error("a stream with a changing rate needs perSecondMax");
    this.#advance();
  }

  take(): Arrival {
    const { pod, checks, client } = this.#stream;
    const atUs = this.dueUs;
    const arrival: Arrival = {
      atUs,
      pod: pod === undefined ? ANY_POD : pod(this.#random, atUs),
      client: client ?? 0,
      checks: checks === undefined ? ONE_CHECK : checks(this.#random, atUs),
    };
    this.#advance();
    return arrival;
  }

  #advance(): void {
    const { perSecond, spacing } = this.#stream;
    const meanUs = 1e6 / this.#most;
    for (let i = 0; i < THINNED_MAX; i += 1) {
      this.#exactUs += spacing === "even" ? meanUs : this.#random.exponential(meanUs);
      const now = typeof perSecond === "number" ? perSecond : perSecond(this.#exactUs);
      if (now >= this.#most || this.#random.draw() * this.#most < now) {
        this.dueUs = Math.floor(this.#exactUs);
        return;
      }
    }
    this.dueUs = Number.POSITIVE_INFINITY;
  }
}

/** `high` for `onUs` of every `periodUs`, else `low`. */
export function onOff(
  high: number,
  low: number,
  onUs: DurationUs,
  periodUs: DurationUs,
): (atUs: InstantUs) => number {
  return (atUs) => (atUs % periodUs < onUs ? high : low);
}

/** Straight from `from` at the start to `to` at `overUs`. */
export function ramp(from: number, to: number, overUs: DurationUs): (atUs: InstantUs) => number {
  return (atUs) => from + (to - from) * Math.min(1, atUs / overUs);
}

/** Draws 0..count-1 with probability proportional to `1 / (rank + 1)^exponent`. */
export function zipf(count: number, exponent: number): (random: Prng) => number {
  const sums = new Float64Array(count);
  let total = 0;
  for (let i = 0; i < count; i += 1) {
    total += 1 / (i + 1) ** exponent;
    sums[i] = total;
  }
  return (random) => {
    const draw = random.draw() * total;
    let [low, high] = [0, count - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((sums[middle] as number) > draw) high = middle;
      else low = middle + 1;
    }
    return low;
  };
}

/** One check of limit 0 with a cost drawn from a list. */
export function costs(list: readonly Tokens[]): (random: Prng) => readonly SimCheck[] {
  const checks = list.map((cost): readonly SimCheck[] => [{ limit: 0, key: "k", cost }]);
  return (random) => checks[random.below(checks.length)] as readonly SimCheck[];
}

/** One check of limit 0, cost 1, under a key drawn by number. */
export function keys(draw: (random: Prng) => number): (random: Prng) => readonly SimCheck[] {
  const checks: Map<number, readonly SimCheck[]> = new Map();
  return (random) => {
    const number = draw(random);
    let check = checks.get(number);
    if (check === undefined) {
      check = [{ limit: 0, key: `k${number}`, cost: 1 }];
      checks.set(number, check);
    }
    return check;
  };
}

/** `count` requests at one instant, spread evenly over pods `0..pods-1`, or all to one pod. */
export interface Salvo {
  readonly atUs: InstantUs;
  readonly count: number;
  readonly pod: (i: number) => number;
  readonly spacingUs?: DurationUs;
  readonly checks?: readonly SimCheck[];
}

/** Exact requests at exact instants: attackers and edges. */
export function salvos(summary: string, list: readonly Salvo[]): Workload {
  const arrivals: Arrival[] = list.flatMap(({ atUs, count, pod, spacingUs = 0, checks }) =>
    Array.from({ length: count }, (_, i) => ({
      atUs: atUs + i * spacingUs,
      pod: pod(i),
      client: 0,
      checks: checks ?? ONE_CHECK,
    })),
  );
  arrivals.sort((a, b) => a.atUs - b.atUs);
  return {
    summary,
    start() {
      let at = 0;
      return {
        next() {
          at += 1;
          return arrivals[at - 1];
        },
      };
    },
  };
}

/** Several workloads at once, retries of each included. */
export function together(...workloads: readonly Workload[]): Workload {
  return {
    summary: workloads.map((workload) => workload.summary).join(", and "),
    start(setup) {
      const runs = workloads.map((workload, i) =>
        workload.start({ ...setup, random: setup.random.fork(`part ${i}`) }),
      );
      const due = runs.map((run) => run.next());
      const owners: WeakMap<Arrival, WorkloadRun> = new WeakMap();
      const own = (arrival: Arrival | undefined, run: WorkloadRun): Arrival | undefined => {
        if (arrival !== undefined && run.answered !== undefined) owners.set(arrival, run);
        return arrival;
      };
      return {
        next() {
          let first = -1;
          for (const [i, arrival] of due.entries()) {
            if (arrival === undefined) continue;
            if (first < 0 || arrival.atUs < (due[first]?.atUs ?? 0)) first = i;
          }
          const run = runs[first];
          if (run === undefined) return undefined;
          const arrival = due[first];
          due[first] = run.next();
          return own(arrival, run);
        },
        answered(nowUs, arrival, answer) {
          const run = owners.get(arrival);
          if (run === undefined) return undefined;
          return own(run.answered?.(nowUs, arrival, answer), run);
        },
      };
    },
  };
}
