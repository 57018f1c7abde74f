/** The engine as the reconcile loop drives it. */
import type { PodLimiter } from "../core/pod-limiter.ts";

/** What the loop needs of `PodLimiter`; tests put a scripted one in its place. */
export type Engine = Pick<
  PodLimiter,
  | "wakeAt"
  | "decide"
  | "report"
  | "tick"
  | "replied"
  | "failed"
  | "callReplied"
  | "callFailed"
  | "largeCosts"
  | "standing"
  | "membershipChanged"
  | "membershipListed"
  | "membershipFailed"
  | "configChanged"
  | "beginLeave"
  | "settled"
  | "counts"
  | "figures"
>;
