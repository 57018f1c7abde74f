/** What the pod says about itself in `/status`. Keys of callers never appear in it. */
import { type Figures, type LimitFigures, OUTCOMES, SOURCES } from "../core/tally.ts";

/** Who this pod is and what it runs with. */
export interface Identity {
  readonly version: string;
  readonly fleet: string;
  readonly podId: string;
  readonly uptimeSeconds: number;
  readonly config: ConfigStanding;
  readonly store: "embedded" | "redis";
}

/** Which configuration is in force, and what became of the one that was read last. */
export interface ConfigStanding {
  /** Hash of the configuration in force. */
  readonly hash: string;
  /** When it was put in force, seconds since the epoch. */
  readonly inForceSinceSeconds: number;
  readonly reloadsOk: number;
  readonly reloadsFailed: number;
  /** Since the start; `none` when the files have not changed. */
  readonly lastReload: "none" | "ok" | "failed";
  /** When the files were read last that had changed. */
  readonly lastReloadSeconds: number | undefined;
  /** Why they were refused; empty unless they were. */
  readonly problems: readonly ConfigProblem[];
  /** Fields that the files change and that wait for a restart. */
  readonly needsRestart: readonly string[];
}

/** The offending value is left out: whoever sees the status need not see what the file holds. */
export interface ConfigProblem {
  readonly source: string;
  readonly line: number | undefined;
  readonly field: string;
  readonly message: string;
}

export function statusOf(identity: Identity, figures: Figures): object {
  return {
    version: identity.version,
    fleet: identity.fleet,
    pod: identity.podId,
    uptime_seconds: Math.round(identity.uptimeSeconds),
    config: configStatus(identity.config),
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

function configStatus(config: ConfigStanding): object {
  const { lastReloadSeconds: at, problems } = config;
  return {
    hash: config.hash,
    loaded_at: rfc3339(config.inForceSinceSeconds),
    reloads: { ok: config.reloadsOk, failed: config.reloadsFailed },
    last_reload: {
      outcome: config.lastReload,
      ...(at !== undefined && { at: rfc3339(at) }),
      ...(problems.length > 0 && {
        problems: problems.map(({ source, line, field, message }) => {
          return { source, line, field, message };
        }),
      }),
    },
    needs_restart: config.needsRestart,
  };
}

function rfc3339(seconds: number): string {
  return new Date(seconds * 1_000).toISOString();
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
