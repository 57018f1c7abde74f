/**
 * What the pod says about itself in `/status`. Keys of callers appear in it only where the
 * configuration says so, and by their digests otherwise.
 */
import type { Limit } from "../core/limit.ts";
import type { LimitStanding } from "../core/mode-choice.ts";
import { type Figures, type LimitFigures, OUTCOMES, SOURCES, storeTierOf } from "../core/tally.ts";
import type {
  KeyFigures,
  Observed,
  OutcomeRates,
  RankedKey,
  WorkerCounts,
} from "../ports/observed.ts";
import { rfc3339, rounded } from "./status-numbers.ts";

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

/** What the status is made of. */
export interface StatusParts {
  readonly identity: Identity;
  /** Undefined where one process does everything. */
  readonly workers?: WorkerCounts | undefined;
  readonly figures: Figures;
  /** Those in force, in the order of the configuration, and how each is kept. */
  readonly limits: readonly { readonly limit: Limit; readonly standing: LimitStanding }[];
  readonly observed: Observed;
  /** Keys are shown as callers gave them. */
  readonly showKeys: boolean;
  keyDigest(limit: string, key: string): string;
}

/** Longest list of keys. */
const KEYS_SHOWN_MAX = 10;

export function statusOf(parts: StatusParts): object {
  const { identity, figures, observed, workers } = parts;
  const { listing } = figures;
  return {
    version: identity.version,
    fleet: identity.fleet,
    pod: identity.podId,
    uptime_seconds: Math.round(identity.uptimeSeconds),
    config: configStatus(identity.config),
    ...(workers !== undefined && {
      workers: { configured: workers.workers, up: workers.up, restarts: workers.restarts },
    }),
    store: { kind: identity.store, up: figures.storeUp, tier: storeTierOf(figures) },
    fallback_active: figures.fallbackActive,
    live_pods: figures.pods,
    ...(listing !== undefined && { listing: { pods: listing.pods, up: listing.isCurrent } }),
    tracked_keys: figures.trackedKeys,
    evicted_keys: figures.evictedKeys,
    lost_tokens: figures.lostTokens,
    reconciles: figures.reconciled,
    per_second: ratesStatus(observed.history.rates()),
    limits: limitsStatus(parts),
    keys: keysStatus(parts, observed.keys.figures(KEYS_SHOWN_MAX)),
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

function limitsStatus({ figures, limits, observed }: StatusParts): object[] {
  const byName = new Map(figures.limits.map((each) => [each.name, each]));
  return limits.flatMap(({ limit, standing }) => {
    const known = byName.get(limit.name);
    if (known === undefined) return [];
    return [
      {
        name: limit.name,
        rate_per_second: limit.rate,
        burst: limit.burst,
        mode: standing.mode,
        mode_reason: standing.reason,
        over_admission_bound: standing.boundTokens,
        fallback: limit.fallback.policy,
        shadow: limit.shadow,
        per_second: ratesStatus(observed.history.rates(limit.name)),
        ...countsStatus(known),
      },
    ];
  });
}

function countsStatus({ tally, share, unreconciled, debt }: LimitFigures): object {
  return {
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

function ratesStatus([allowed, denied, shadowDenied]: OutcomeRates): object {
  return {
    allowed: rounded(allowed),
    denied: rounded(denied),
    shadow_denied: rounded(shadowDenied),
  };
}

function keysStatus({ showKeys, keyDigest }: StatusParts, figures: KeyFigures): object {
  const shown = ({ limit, key, perSecond }: RankedKey): object => ({
    limit,
    ...(showKeys ? { key } : { digest: keyDigest(limit, key) }),
    per_second: rounded(perSecond),
  });
  return {
    shown: showKeys,
    sampled_every: figures.sampledEvery,
    busiest: figures.busiest.map(shown),
    most_denied: figures.mostDenied.map(shown),
  };
}
