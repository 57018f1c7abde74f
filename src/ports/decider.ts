/** What the front doors (HTTP, later gRPC and others) ask; the daemon answers with the engine. */
import type { Check, Decision } from "../core/decision.ts";
import type { Limit } from "../core/limit.ts";
import type { LimitStanding } from "../core/mode-choice.ts";

export interface Decider {
  /** The configured limit of that name, without key overrides. */
  limit(name: string): Limit | undefined;
  /** All configured limits, in configuration order. */
  limits(): readonly Limit[];
  /** How a configured limit is kept now, why, and what that costs in accuracy. */
  standing(limit: Limit): LimitStanding;
  /**
   * Decides a check over one or several limits, all or nothing: when one denies, nothing is spent.
   *
   * Answers at once when the pod can decide by itself, which is the rule; a promise means that the
   * check waits for the store, never longer than the decision timeout. Never throws for a refusal.
   *
   * @returns One decision per check, in order. Those that come at once are written over by the next
   *   `decide`: read them before it, or copy them.
   */
  decide(checks: readonly Check[]): readonly Decision[] | Promise<readonly Decision[]>;
  /** Debits (or, when negative, refunds) unconditionally and answers with the resulting state. */
  report(check: Check): Decision;
}
