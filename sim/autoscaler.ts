/**
 * What changes the number of pods by itself, and a model of the one that most fleets have: the
 * Kubernetes HorizontalPodAutoscaler.
 *
 * The rule is that of the Kubernetes documentation ("Horizontal Pod Autoscaling", algorithm details
 * and stabilization): `desired = ceil(current * metric / target)`, nothing when the ratio is within
 * the tolerance of 1, then the least that was desired within the span for scaling up (0 s) and the
 * most that was desired within the span for scaling down (5 min). Pods at once, percentages per
 * period and several metrics are left out: they only slow down what limits must withstand.
 */
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
  /**
   * The number of pods wanted from now on; the world joins or (gracefully) stops the difference.
   */
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

export interface HorizontalPodAutoscaler {
  readonly minPods: number;
  readonly maxPods: number;
  /** Requests per second that make one pod as busy as it should be: the target utilisation. */
  readonly targetPerPod: number;
  /** Sync period; 15 s in Kubernetes. */
  readonly periodUs?: DurationUs;
  readonly startupUs?: DurationUs;
  /** Ratios this close to 1 change nothing; 0.1 in Kubernetes. */
  readonly tolerance?: number;
  /** Stabilization of scaling up; 0 in Kubernetes. */
  readonly upUs?: DurationUs;
  /** Stabilization of scaling down; 5 min in Kubernetes. */
  readonly downUs?: DurationUs;
}

export function horizontalPodAutoscaler(given: HorizontalPodAutoscaler): Autoscaler {
  const { minPods, maxPods, targetPerPod } = given;
  const { periodUs = 15_000_000, startupUs = 5_000_000 } = given;
  if (!(minPods >= 1 && maxPods >= minPods && targetPerPod > 0 && periodUs > 0)) {
    throw new RangeError(`no autoscaler from ${minPods} to ${maxPods} pods at ${targetPerPod}/s`);
  }
  return {
    summary: `${minPods} to ${maxPods} pods at ${targetPerPod}/s each, every ${periodUs / 1e6} s`,
    periodUs,
    startupUs,
    start: () => new Stabilized(given),
  };
}

interface Wish {
  readonly atUs: InstantUs;
  readonly pods: number;
}

class Stabilized implements AutoscalerRun {
  readonly #rules: HorizontalPodAutoscaler;
  /** Wishes within the longer of the two spans, oldest first. */
  #wishes: Wish[] = [];

  constructor(rules: HorizontalPodAutoscaler) {
    this.#rules = rules;
  }

  wanted({ nowUs, pods, requestsPerSecond }: Observed): number {
    const { minPods, maxPods, targetPerPod, tolerance = 0.1 } = this.#rules;
    const { upUs = 0, downUs = 300_000_000 } = this.#rules;
    // A fleet without a serving pod has no metric; the deployment keeps its least number.
    const ratio = pods === 0 ? 1 : requestsPerSecond / (pods * targetPerPod);
    const raw = Math.abs(ratio - 1) <= tolerance ? pods : Math.ceil(pods * ratio);
    const wish = { atUs: nowUs, pods: Math.min(maxPods, Math.max(minPods, raw)) };
    const oldestUs = nowUs - Math.max(upUs, downUs);
    this.#wishes = [...this.#wishes.filter(({ atUs }) => atUs > oldestUs), wish];
    const within = (spanUs: DurationUs): number[] =>
      this.#wishes.filter(({ atUs }) => atUs >= nowUs - spanUs).map((past) => past.pods);
    const up = Math.min(...within(upUs));
    const down = Math.max(...within(downUs));
    if (pods < up) return up;
    return pods > down ? down : Math.min(maxPods, Math.max(minPods, pods));
  }
}
