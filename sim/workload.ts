/** What callers do: a seeded sequence of requests, open loop, closed loop (retries) or both. */
import type { Limit } from "../src/core/limit.ts";
import type { InstantUs } from "../src/core/units.ts";
import type { Prng } from "./prng.ts";
import type { Answer, SimCheck } from "./scheme.ts";

/** The balancer chooses a serving pod at random. */
export const ANY_POD = -1;

export interface Arrival {
  readonly atUs: InstantUs;
  /** Number of the pod it is sent to; a pod that does not serve is replaced by the balancer. */
  readonly pod: number;
  /** Who asks, for fairness per class and for retries; 0 when nobody cares. */
  readonly client: number;
  /** 1 to 16 checks, all or nothing. Share the array between arrivals that are alike. */
  readonly checks: readonly SimCheck[];
}

export interface WorkloadSetup {
  readonly random: Prng;
  readonly limits: readonly Limit[];
  readonly durationUs: InstantUs;
  /** Pods at the start. */
  readonly pods: number;
}

export interface WorkloadRun {
  /** The next open-loop arrival, in order of time; undefined when there are no more. */
  next(): Arrival | undefined;
  /**
   * A closed loop: what a caller does after an answer, at or after `nowUs`; undefined for nothing.
   */
  answered?(nowUs: InstantUs, arrival: Arrival, answer: Answer): Arrival | undefined;
}

export interface Workload {
  /** One line for reports, e.g. "2 r over 20 pods, Poisson". */
  readonly summary: string;
  start(setup: WorkloadSetup): WorkloadRun;
}
