/** What the engine is told from outside, and what it wants done outside. */
import type { Decision } from "./decision.ts";
import type { Batch } from "./exchange.ts";

/** The size of the fleet as one source tells it. */
export interface MembershipView {
  /** Pods counted now, this one included. */
  readonly pods: number;
  /** Of these, pods that the store has not heard for a while. */
  readonly silent: number;
}

/** A check that waits for the store; the answer comes as an effect with the same number. */
export interface Held {
  readonly held: number;
}

export type Effect =
  | { readonly kind: "exchange"; readonly batch: Batch }
  | { readonly kind: "answer"; readonly held: number; readonly decisions: readonly Decision[] };

/** Why an exchange brought no reply. */
export type ExchangeTrouble = "timeout" | "unreachable" | "refused" | "malformed";
