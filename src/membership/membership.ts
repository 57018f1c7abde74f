/**
 * How the pod learns how many pods there are. One implementation per source of the configuration.
 */
import type { MembershipView } from "../core/effect.ts";

/** Who wants to know; the daemon passes the reconcile loop. */
export interface MembershipListener {
  membershipChanged(view: MembershipView): void;
  membershipFailed(error: unknown): void;
}

export interface Membership {
  /** Resolves when the fleet has been counted for the first time; may be never. */
  readonly joined: Promise<void>;
  /** Begins to count. Safe to call once. */
  start(): void;
  /** There is reason to believe that the store answers again. */
  nudge(): void;
  /** Stops counting and takes this pod out of the fleet. Failures are the caller's to judge. */
  leave(): Promise<void>;
}
