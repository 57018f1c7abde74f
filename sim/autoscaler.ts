/** What changes the number of pods by itself; see `sim/workloads` for a model of the Kubernetes HPA. */
import type { DurationUs, InstantUs } from "../src/core/units.ts";

/** What an autoscaler may look at. */
export interface Observed {
  readonly nowUs: InstantUs;
  /** Pods that serve now. */
  readonly pods: number;
  /** Requests that arrived at the fleet since the last look, per second. */
  readonly requestsPerSecond: number;
}

export interface AutoscalerRun {
  /** The number of pods wanted from now on; the world joins or (gracefully) stops the difference. */
  wanted(observed: Observed): number;
}

export interface Autoscaler {
  readonly summary: string;
  /** Time between two looks. */
  readonly periodUs: DurationUs;
  /** Time from the wish for a pod until it serves. */
  readonly startupUs: DurationUs;
  start(): AutoscalerRun;
}
