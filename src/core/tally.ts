/**
 * What one limit has decided, counted where it is decided. Plain numbers in fixed places, so that a
 * check costs two additions and a scrape reads them without touching the hot path.
 */
import type { Decision, Source } from "./decision.ts";
import { FAULT } from "./exchange.ts";
import type { Tokens } from "./units.ts";

export type Outcome = "allowed" | "denied" | "shadow_denied";

export const OUTCOMES: readonly Outcome[] = ["allowed", "denied", "shadow_denied"];
export const SOURCES: readonly Source[] = ["local", "store", "fallback"];

export class Tally {
  /** Decisions by `outcome * SOURCES.length + source`. */
  readonly decisions: Float64Array = new Float64Array(OUTCOMES.length * SOURCES.length);
  /** Tokens asked for by decided checks, by outcome. */
  readonly tokens: Float64Array = new Float64Array(OUTCOMES.length);
  /** Tokens that the store found admitted beyond rate and burst (growth of debt it reported). */
  overAdmitted: Tokens = 0;
  /** Debt that the store had to forgive, tokens. */
  clipped: Tokens = 0;
  /** Replies that told of a stored value which could not be read and was replaced. */
  damaged = 0;
  /** Replies that told of a key which was gone before its bucket could be full again. */
  lostKeys = 0;

  /** @param fault - One of `FAULT`, as a reply told it. */
  countFault(fault: number): void {
    if (fault === FAULT.damaged) this.damaged += 1;
    else if (fault === FAULT.lost) this.lostKeys += 1;
  }

  count(decision: Decision, cost: Tokens): void {
    const outcome = decision.wouldDeny ? 2 : decision.allowed ? 0 : 1;
    const source = decision.source === "local" ? 0 : decision.source === "store" ? 1 : 2;
    const cell = outcome * SOURCES.length + source;
    this.decisions[cell] = (this.decisions[cell] ?? 0) + 1;
    this.tokens[outcome] = (this.tokens[outcome] ?? 0) + cost;
  }
}

/** What a limit has decided. The tally goes on counting. */
export interface LimitCounts {
  readonly name: string;
  readonly tally: Tally;
}

/** A limit's figures at one instant, for metrics and the list of limits. */
export interface LimitFigures extends LimitCounts {
  /** Admitted here and not yet acknowledged by the store. */
  readonly unreconciled: Tokens;
  /** Largest debt among this pod's buckets: at the last reconcile, or now without a store. */
  readonly debt: Tokens;
  /** Mean share of the rate over this pod's buckets, 0 to 1; 1 without a store. */
  readonly share: number;
}

/** Pods as a source beside the store lists them. */
export interface Listing {
  /** As it told last. */
  readonly pods: number;
  /** False once the source has been out of reach for a while. */
  readonly isCurrent: boolean;
}

/** Figures of the whole engine that cost the same to read however many keys there are. */
export interface Counts {
  readonly limits: readonly LimitCounts[];
  readonly trackedKeys: number;
  readonly evictedKeys: number;
  /** Live pods as used for shares. */
  readonly pods: number;
  /** Undefined without such a source, and before it has told anything. */
  readonly listing: Listing | undefined;
  /** Some lane, or membership, is isolated. */
  readonly fallbackActive: boolean;
  /** The store answered last time it was asked. */
  readonly storeUp: boolean;
  /** Tokens admitted here whose report was given up, after an outage or a flood of keys. */
  readonly lostTokens: Tokens;
  /** Batches by how they ended, and their entries. */
  readonly reconciled: ReconcileCounts;
}

/** How the pod as a whole stands with the store; a limit's own tier may be better. */
export type StoreTier = "connected" | "doubtful" | "isolated";

/** In the order from good to bad. */
export const STORE_TIERS: readonly StoreTier[] = ["connected", "doubtful", "isolated"];

export function storeTierOf({ fallbackActive, storeUp }: Counts): StoreTier {
  if (fallbackActive) return "isolated";
  return storeUp ? "connected" : "doubtful";
}

/** Figures of the whole engine at one instant; reading them looks at every key. */
export interface Figures extends Counts {
  readonly limits: readonly LimitFigures[];
}

export interface ReconcileCounts {
  ok: number;
  timeout: number;
  unreachable: number;
  refused: number;
  malformed: number;
  keys: number;
}

export function noReconciles(): ReconcileCounts {
  return { ok: 0, timeout: 0, unreachable: 0, refused: 0, malformed: 0, keys: 0 };
}
