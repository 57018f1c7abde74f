/** What the pod says about itself in `/status`. Keys of callers never appear in it. */
import { type Figures, type LimitFigures, OUTCOMES, SOURCES } from "../core/tally.ts";

/** Who this pod is and what it runs with. */
export interface Identity {
  readonly version: string;
  readonly fleet: string;
  readonly podId: string;
  readonly uptimeSeconds: number;
  /** Hash of the configuration in force. */
  readonly configHash: string;
  /** When that configuration was put in force, RFC 3339. */
  readonly configLoadedAt: string;
  readonly store: "embedded" | "redis";
}

export function statusOf(identity: Identity, figures: Figures): object {
  return {
    version: identity.version,
    fleet: identity.fleet,
    pod: identity.podId,
    uptime_seconds: Math.round(identity.uptimeSeconds),
    config: { hash: identity.configHash, loaded_at: identity.configLoadedAt },
    store: { kind: identity.store, up: figures.storeUp },
    fallback_active: figures.fallbackActive,
    live_pods: figures.pods,
    tracked_keys: figures.trackedKeys,
    evicted_keys: figures.evictedKeys,
    lost_tokens: figures.lostTokens,
    reconciles: figures.reconciled,
    limits: figures.limits.map(limitStatus),
  };
}

function limitStatus({ name, tally, share, unreconciled, debt }: LimitFigures): object {
  return {
    name,
    share_ratio: share,
    unreconciled_tokens: unreconciled,
    debt_tokens: debt,
    over_admitted_tokens: tally.overAdmitted,
    decisions: Object.fromEntries(
      OUTCOMES.map((outcome, index) => [outcome, decisionsOf(tally.decisions, index)]),
    ),
    tokens: Object.fromEntries(
      OUTCOMES.map((outcome, index) => [outcome, tally.tokens[index] ?? 0]),
    ),
  };
}

/** Decisions with one outcome, from whichever source. */
function decisionsOf(decisions: Float64Array, outcome: number): number {
  const first = outcome * SOURCES.length;
  return decisions.subarray(first, first + SOURCES.length).reduce((sum, count) => sum + count, 0);
}
