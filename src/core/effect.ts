/** What the engine is told from outside, and what it wants done outside. */
import type { Decision } from "./decision.ts";
import type { Batch } from "./exchange.ts";
import type { StoreCall } from "./store-call.ts";

/** The size of the fleet as one source tells it. */
export interface MembershipView {
  /** Pods counted now, this one included. */
  readonly pods: number;
  /** Of these, pods that the store has not heard for a while. */
  readonly silent: number;
  /** Upper edge of the band of pods that the fleet agreed on; by default from `pods`. */
  readonly band?: number;
  /** Names of limits for which some pod lately saw a cost that is a large part of the burst. */
  readonly largeCosts?: readonly string[];
}

/** A check that waits for the store; the answer comes as an effect with the same number. */
export interface Held {
  readonly held: number;
}

export type Effect =
  | { readonly kind: "exchange"; readonly batch: Batch }
  | { readonly kind: "call"; readonly call: StoreCall }
  | { readonly kind: "answer"; readonly held: number; readonly decisions: readonly Decision[] };

/** Why an exchange brought no reply. */
export type ExchangeTrouble = "timeout" | "unreachable" | "refused" | "malformed";
