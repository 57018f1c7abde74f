/** What `/status?history` of a running sidecar answers, as far as `aliquot top` shows it. */
import { ask, type Place, UnreachableError } from "./sidecar.ts";

export interface Rates {
  readonly allowed: number;
  readonly denied: number;
  readonly shadow_denied: number;
}

export interface LimitStatus {
  readonly name: string;
  readonly rate_per_second: number;
  readonly burst: number;
  readonly mode: string;
  readonly over_admission_bound: number;
  readonly shadow: boolean;
  readonly share_ratio: number;
  readonly debt_tokens: number;
  readonly per_second: Rates;
}

export interface KeyStatus {
  readonly limit: string;
  /** As the caller gave it, where that may be shown. */
  readonly key?: string;
  readonly digest?: string;
  readonly per_second: number;
}

export interface ReloadProblem {
  readonly source: string;
  readonly line?: number;
  readonly field: string;
  readonly message: string;
}

export interface StatusAnswer {
  readonly version: string;
  readonly fleet: string;
  readonly pod: string;
  readonly uptime_seconds: number;
  readonly config: {
    readonly hash: string;
    readonly loaded_at: string;
    readonly last_reload: {
      readonly outcome: "none" | "ok" | "failed";
      readonly at?: string;
      readonly problems?: readonly ReloadProblem[];
    };
    readonly needs_restart: readonly string[];
  };
  readonly store: { readonly kind: string; readonly tier: string };
  readonly fallback_active: boolean;
  readonly live_pods: number;
  readonly listing?: { readonly pods: number; readonly up: boolean };
  /** Where other processes decide. */
  readonly workers?: {
    readonly configured: number;
    readonly up: number;
    readonly restarts: number;
  };
  readonly tracked_keys: number;
  readonly per_second: Rates;
  readonly limits: readonly LimitStatus[];
  readonly keys: {
    readonly sampled_every: number;
    readonly busiest: readonly KeyStatus[];
    readonly most_denied: readonly KeyStatus[];
  };
  readonly started: boolean;
  readonly draining: boolean;
  readonly history: {
    readonly last: number;
    readonly allowed: readonly number[];
    readonly denied: readonly number[];
    readonly shadow_denied: readonly number[];
    readonly p99_ms: readonly (number | null)[];
  };
}

/**
 * Asks a sidecar how it stands.
 *
 * @param after - Seconds of its history up to this one are left out.
 * @throws {UnreachableError} When nobody answers, or something that is no ops listener of Aliquot.
 */
export async function askStatus(places: readonly Place[], after: number): Promise<StatusAnswer> {
  const path = `/status?history=${Math.max(0, after)}`;
  const { status, body } = await ask(places, { method: "GET", path });
  const answer = parsed(body);
  if (status === 200 && isStatus(answer)) return answer;
  throw new UnreachableError(
    `what answers is no ops listener of this version of Aliquot: ${status} to ${path}`,
  );
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

/** The same build answers as asks; this tells it from another program, or from an older version. */
function isStatus(answer: unknown): answer is StatusAnswer {
  const isMap = typeof answer === "object" && answer !== null;
  return isMap && ["fleet", "limits", "keys", "history"].every((field) => field in answer);
}
