/**
 * How many pods to count on.
 *
 * Two sources tell: heartbeats in the store, and, where there is one, a listing that does not
 * depend on the store (Kubernetes, DNS). The larger one counts.
 *
 * For shares the count goes up at once and down late: a pod that looks dead may be alive behind a
 * broken link, so the largest count of the last `HOLD_US` holds. For heartbeats that is connected
 * time: an outage does not age them. For the fallback the largest count of ten minutes holds,
 * because a pod that cannot reach the store may not learn that the fleet has grown.
 *
 * A pod may run several members of the fleet. Heartbeats count members; what counts pods (a
 * listing, and what is assumed before anything was counted) is multiplied.
 */
import { RecentMost } from "./recent-most.ts";
import type { Listing } from "./tally.ts";
import type { DurationUs, InstantUs } from "./units.ts";

/** Longer than a pod that lost the store can go on with its connected share, plus a reconcile. */
const HOLD_US: DurationUs = 3_100_000;
/** A pod listed and not heard for less may not have begun, or may have left gracefully. */
const UNHEARD_GRACE_US: DurationUs = 2_500_000;
const PEAK_SPAN_US: DurationUs = 60_000_000;
const PEAK_SPANS = 10;
const RECONNECT_GRACE_US: DurationUs = 2_500_000;
/** However many are silent, something is left for the rest. */
const HOLD_MAX = 0.95;

export class FleetSize {
  readonly #perPod: number;
  /** By heartbeats; instants are connected time. */
  readonly #heard = new RecentMost(HOLD_US);
  readonly #listed = new RecentMost(HOLD_US);
  /** The fewest pods that were listed and not heard of late, as a negative number. */
  readonly #leastUnheard = new RecentMost(UNHEARD_GRACE_US);
  #listingHolds = false;
  readonly #peaks: number[] = [];
  #peakSpan = 0;
  #connectedUs: InstantUs = 0;
  #lastAt: InstantUs | undefined;
  #failures = 0;
  #failingSince: InstantUs = Number.POSITIVE_INFINITY;

  #silent = 0;
  /** When the store answered again after failures. */
  #reconnectedAt: InstantUs = Number.NEGATIVE_INFINITY;

  /** @param perPod - Members of the fleet in each of its pods. */
  constructor(perPod = 1) {
    this.#perPod = perPod;
  }

  get joined(): boolean {
    return this.#heard.last !== undefined;
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
   * The fleet was counted by its heartbeats.
   *
   * @param silent - Pods among them that the store has not heard for a while: crashed, or cut off
   *   and living on their fallback. A listing knows better which of the two; then it is not
   *   looked at.
   */
  counted(now: InstantUs, pods: number, silent: number): void {
    const count = Math.max(1, Math.floor(pods));
    if (this.#failures > 0) this.#reconnectedAt = now;
    if (this.#lastAt !== undefined && this.#failures === 0) {
      this.#connectedUs += Math.max(0, now - this.#lastAt);
    }
    this.#lastAt = now;
    this.#failures = 0;
    this.#failingSince = Number.POSITIVE_INFINITY;
    this.#heard.seen(this.#connectedUs, count);
    this.#listed.age(now);
    this.#silent = this.#cutOff(now, count, Math.max(0, Math.floor(silent)));
    this.#notePeak(now, Math.max(count, this.#listed.last ?? 0));
  }

  /** A count by heartbeats failed. */
  failed(now: InstantUs): void {
    if (this.#failures === 0) this.#failingSince = now;
    this.#failures += 1;
    this.#listed.age(now);
  }

  /**
   * A source that does not depend on the store lists so many pods.
   *
   * @param pods - Undefined when the source has been out of reach for a while: its last number
   *   still counts for the size of the fleet, but no longer tells a pod that is cut off from one
   *   that died.
   */
  listed(now: InstantUs, pods: number | undefined): void {
    this.#listingHolds = pods !== undefined;
    if (pods === undefined) return;
    const count = Math.max(0, Math.floor(pods)) * this.#perPod;
    this.#listed.changed(now, count);
    this.#notePeak(now, Math.max(count, this.#heard.last ?? 0));
  }

  /** What the listing told last; undefined when none has told anything. */
  get listing(): Listing | undefined {
    const pods = this.#listed.last;
    if (pods === undefined) return undefined;
    return { pods: pods / this.#perPod, isCurrent: this.#listingHolds };
  }

  /**
   * Live members for shares, at least 1.
   *
   * @param assumed - Pods to assume before the first count.
   */
  pods(assumed: number): number {
    return Math.max(this.#heard.most ?? assumed * this.#perPod, this.#listed.most ?? 0);
  }

  /** Members for the fallback, at least 1. @param assumed - As for `pods`. */
  podsWhenIsolated(assumed: number): number {
    if (!this.joined) return this.pods(assumed);
    return this.#peaks.reduce((most, pods) => Math.max(most, pods), this.pods(assumed));
  }

  /**
   * Part of the refill that the connected pods must leave to those that are cut off, so that the
   * fleet as a whole keeps the limit: margin * silent / pods. None shortly after this pod's own
   * connection came back, when the others may look silent only because all were.
   */
  hold(now: InstantUs, margin: number): number {
    if (this.#silent === 0 || now - this.#reconnectedAt < RECONNECT_GRACE_US) return 0;
    const pods = this.podsWhenIsolated(1);
    return Math.min(HOLD_MAX, (margin * Math.min(this.#silent, pods - 1)) / pods);
  }

  /**
   * Pods that are cut off and spend their fallback. With a listing these are the silent ones that
   * are listed, not those that died; and once the store has dropped them, those that have been
   * listed and not heard for a while.
   */
  #cutOff(now: InstantUs, counted: number, silent: number): number {
    const unheard = Math.max(0, (this.#listed.last ?? 0) - (counted - silent));
    this.#leastUnheard.seen(now, -unheard);
    if (!this.#listingHolds) return silent;
    return Math.max(Math.min(unheard, silent), -(this.#leastUnheard.most ?? 0));
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
