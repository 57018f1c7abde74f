/** Puts a configuration and a user's scenario together into one that the world can run. */
import type { Config } from "../../src/config/config.ts";
import { type Limit, limitForKey } from "../../src/core/limit.ts";
import { DEFAULT_TIMING, type NodeTiming } from "../aliquot-node.ts";
import { horizontalPodAutoscaler } from "../autoscaler.ts";
import { LAN } from "../network.ts";
import type { Scenario } from "../scenario.ts";
import { together } from "../traffic.ts";
import type { Arrival, Workload } from "../workload.ts";
import { csvReplay } from "../workloads/csv-replay.ts";
import { DEFAULT_KEY, loadWorkload } from "./load-workload.ts";
import type { UserScenario } from "./read-scenario.ts";
import type { ScenarioAutoscaler } from "./scenario-schema.ts";

/** Traces that were read, by the path that the scenario names. */
export type Traces = ReadonlyMap<string, readonly Arrival[]>;

/**
 * Limits that the load asks for, each key with an override as a limit of its own: it has a bucket,
 * a bound and a verdict of its own.
 */
export function askedLimits(config: Config, scenario: UserScenario, traces: Traces): Limit[] {
  const asked: Map<string, Limit> = new Map();
  const ask = (limit: Limit, key: string): void => {
    const held = limitForKey(limit, key);
    const name = held === limit ? limit.name : `${limit.name}, ${key}`;
    // Shadow limits are simulated as if they were enforced: that is what a user wants to know.
    asked.set(name, { ...held, name, shadow: false, overrides: new Map() });
  };
  for (const load of scenario.load) {
    if (load.trace !== undefined) {
      for (const { checks } of traces.get(load.trace) ?? []) {
        for (const { limit, key } of checks) ask(config.limits[limit] as Limit, key);
      }
      continue;
    }
    const limit = config.limits.find(({ name }) => name === load.limit);
    if (limit !== undefined) ask(limit, load.keys === undefined ? (load.key ?? DEFAULT_KEY) : "");
  }
  return [...asked.values()];
}

export function buildScenario(
  config: Config,
  user: UserScenario,
  traces: Traces,
  name: string,
): Scenario {
  const limits = askedLimits(config, user, traces);
  const pods = user.pods ?? user.autoscaler?.min ?? 1;
  const place = (limit: Limit | undefined, key: string): number => {
    const own = limits.findIndex((each) => each.name === `${limit?.name}, ${key}`);
    return own >= 0 ? own : limits.findIndex((each) => each.name === limit?.name);
  };
  const workloads = user.load.map((load): Workload => {
    if (load.trace !== undefined) {
      const arrivals = (traces.get(load.trace) ?? []).map((arrival) => ({
        ...arrival,
        checks: arrival.checks.map((check) => ({
          ...check,
          limit: place(config.limits[check.limit], check.key),
        })),
      }));
      return csvReplay(load.trace, arrivals);
    }
    const named = config.limits.find((limit) => limit.name === load.limit);
    const key = load.keys === undefined ? (load.key ?? DEFAULT_KEY) : "";
    return loadWorkload(load, { limit: place(named, key), pods, durationUs: user.duration });
  });
  return {
    name,
    question: "",
    theme: "yours",
    kind: "safety",
    tags: [],
    seeds: [user.seed],
    durationUs: user.duration,
    pods,
    limits,
    configs: [],
    workload: workloads.length === 1 ? (workloads[0] as Workload) : together(...workloads),
    // Half of a message's time is the same for all, half is chance.
    link: { ...LAN, baseUs: user.round_trip / 4, jitterUs: user.round_trip / 4 },
    faults: () => user.plan,
    ...(user.autoscaler === undefined ? {} : { autoscaler: scalerOf(user.autoscaler) }),
    terms: { membership: "store", podsFactor: 1 },
    marks: [],
    measureFromUs: 0,
    verdicts: [],
  };
}

/** What of the configuration the pods of the simulation follow. */
export function timingOf(config: Config): NodeTiming {
  const { heartbeatUs, timeoutUs } = config.membership;
  return {
    heartbeatUs,
    // As in the membership of the product: 2.5 heartbeats without a word are silence.
    membership: {
      ...DEFAULT_TIMING.membership,
      timeoutUs,
      silentAfterUs: Math.min(Math.floor(2.5 * heartbeatUs), timeoutUs),
    },
    commandTimeoutUs: config.redis?.commandTimeoutUs ?? 50_000,
    decisionTimeoutUs: config.decisionTimeoutUs,
    drainTimeoutUs: config.drainTimeoutUs,
    keysMax: config.keysMax,
  };
}

function scalerOf(given: ScenarioAutoscaler): ReturnType<typeof horizontalPodAutoscaler> {
  return horizontalPodAutoscaler({
    minPods: given.min,
    maxPods: given.max,
    targetPerPod: given.requests_per_pod,
    periodUs: given.period,
    startupUs: given.startup,
    upUs: given.up_after,
    downUs: given.down_after,
    tolerance: given.tolerance,
  });
}
