/**
 * How many pods to count on.
 *
 * For shares the count goes up at once and down late: a pod that looks dead may be alive behind a
 * broken link, so the largest count of the last `HOLD_US` of connected time holds. An outage does
 * not age that history. For the fallback the largest count of ten minutes holds, because a pod that
 * cannot reach the store cannot learn that the fleet has grown.
 */
import type { DurationUs, InstantUs } from "./units.ts";

/** Longer than a pod that lost the store can go on with its connected share, plus a reconcile. */
const HOLD_US: DurationUs = 3_100_000;
const PEAK_SPAN_US: DurationUs = 60_000_000;
const PEAK_SPANS = 10;
const RECONNECT_GRACE_US: DurationUs = 2_500_000;
/** However many are silent, something is left for the rest. */
const HOLD_MAX = 0.95;

interface Count {
  readonly atUs: InstantUs;
  readonly pods: number;
}

export class FleetSize {
  /** Counts that no later and larger count outdates; instants are connected time. */
  #recent: Count[] = [];
  readonly #peaks: number[] = [];
  #peakSpan = 0;
  #connectedUs: InstantUs = 0;
  #lastAt: InstantUs | undefined;
  #failures = 0;
  #failingSince: InstantUs = Number.POSITIVE_INFINITY;

  #silent = 0;
  /** When the store answered again after failures. */
  #reconnectedAt: InstantUs = Number.NEGATIVE_INFINITY;

  get joined(): boolean {
    return this.#recent.length > 0;
  }

  /** When the present row of failed counts began; Infinity when the last one succeeded. */
  get failingSince(): InstantUs {
    return this.#failingSince;
  }

  /** The store is away as far as membership can tell: one failure may be chance, two are not. */
  get isolated(): boolean {
    return this.#failures >= (this.joined ? 2 : 1);
  }

  /**
   * The fleet was counted.
   *
   * @param silent - Pods among them that the store has not heard for a while: crashed, or cut off and
   *   living on their fallback.
   */
  counted(now: InstantUs, pods: number, silent: number): void {
    const count = Math.max(1, Math.floor(pods));
    if (this.#failures > 0) this.#reconnectedAt = now;
    this.#silent = Math.max(0, Math.floor(silent));
    if (this.#lastAt !== undefined && this.#failures === 0) {
      this.#connectedUs += Math.max(0, now - this.#lastAt);
    }
    this.#lastAt = now;
    this.#failures = 0;
    this.#failingSince = Number.POSITIVE_INFINITY;
    const horizon = this.#connectedUs - HOLD_US;
    this.#recent = this.#recent.filter((past) => past.pods > count && past.atUs > horizon);
    this.#recent.push({ atUs: this.#connectedUs, pods: count });
    this.#notePeak(now, count);
  }

  failed(now: InstantUs): void {
    if (this.#failures === 0) this.#failingSince = now;
    this.#failures += 1;
  }

  /** Live pods for shares, at least 1. @param assumed - What to assume before the first count. */
  pods(assumed: number): number {
    return this.#recent[0]?.pods ?? assumed;
  }

  /** Pods for the fallback, at least 1. @param assumed - What to assume before the first count. */
  podsWhenIsolated(assumed: number): number {
    if (!this.joined) return assumed;
    return this.#peaks.reduce((most, pods) => Math.max(most, pods), this.pods(assumed));
  }

  /**
   * Part of the refill that the connected pods must leave to those that are cut off, so that the fleet
   * as a whole keeps the limit: margin * silent / pods. None shortly after this pod's own
   * connection came back, when the others may look silent only because all were.
   */
  hold(now: InstantUs, margin: number): number {
    if (this.#silent === 0 || now - this.#reconnectedAt < RECONNECT_GRACE_US) return 0;
    const pods = this.podsWhenIsolated(1);
    return Math.min(HOLD_MAX, (margin * Math.min(this.#silent, pods - 1)) / pods);
  }

  #notePeak(now: InstantUs, count: number): void {
    const span = Math.floor(now / PEAK_SPAN_US);
    if (this.#peaks.length === 0 || span - this.#peakSpan >= PEAK_SPANS) {
      this.#peaks.length = 0;
      this.#peakSpan = span;
      this.#peaks.push(count);
      return;
    }
    while (this.#peakSpan < span) {
      this.#peaks.push(count);
      this.#peakSpan += 1;
    }
    if (this.#peaks.length > PEAK_SPANS) this.#peaks.splice(0, this.#peaks.length - PEAK_SPANS);
    const last = this.#peaks.length - 1;
    this.#peaks[last] = Math.max(this.#peaks[last] as number, count);
  }
}
