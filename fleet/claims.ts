/** What a run must show whatever happens in it, each held against what was seen. */

import { parseDuration } from "../src/config/duration.ts";
import { type DurationUs, type Tokens, US_PER_MS } from "../src/core/units.ts";
import type { Danger } from "./danger.ts";
import { LIMIT, OUTCOME } from "./journal.ts";
import type { RunOptions } from "./options.ts";
import type { RunResult } from "./run.ts";

export interface Claim {
  readonly name: string;
  readonly holds: boolean;
  /** What was seen. */
  readonly says: string;
}

/** What may be admitted too much in hybrid mode when pods join, data is lost, a replica lags. */
const JOIN_PART = 0.1;
const LOSS_PART = 0.12;
const FAILOVER_SECONDS = 0.25;
/** A pod asks for a lease after what it used in about this time. */
const LEASE_SPAN_US: DurationUs = 500_000;
/** Below this the scheduler and the resolution of its measurement are what is seen. */
const DELAY_MIN_US: DurationUs = 10 * US_PER_MS;

export function claimsOf(options: RunOptions, result: RunResult): readonly Claim[] {
  const claims = [errorsClaim(result), waitsClaim(options, result), excessClaim(options, result)];
  if (result.count !== undefined) claims.push(countsClaim(options, result), pathsClaim(result));
  return claims;
}

/** No error reaches a caller; one whose pod was killed knows. */
function errorsClaim({ journal, dangers, failures }: RunResult): Claim {
  const killed = new Set(dangers.flatMap((danger) => (danger.kind === "kill" ? danger.pods : [])));
  let [failed, withPod] = [0, 0];
  for (const { outcome, pod } of journal) {
    if (outcome !== OUTCOME.failed) continue;
    if (killed.has(pod)) withPod += 1;
    else failed += 1;
  }
  const why = failed === 0 ? "" : ` (${[...new Set(failures)].slice(0, 3).join("; ")})`;
  const rest = withPod === 0 ? "" : `, ${withPod} died with their pod`;
  return { name: "errors", holds: failed === 0, says: `${failed} reached a caller${why}${rest}` };
}

/**
 * No decision waits beyond the decision timeout. A machine that lets a process wait delays its
 * event loop as well, and a held check may meet such a turn when it begins and another when it
 * ends: no decision may take longer than the timeout and twice the longest delay.
 */
function waitsClaim(options: RunOptions, { decisionTimes, loopDelayMs }: RunResult): Claim {
  const timeoutUs = parseDuration(options.decisionTimeout) ?? 0;
  const allowedUs = longestWaitUs(options, loopDelayMs);
  const bounds = [...decisionTimes.keys()].sort((a, b) => a - b);
  let [all, late, held] = [0, 0, 0];
  let longerThanMs = 0;
  for (const boundMs of bounds) {
    const count = decisionTimes.get(boundMs) ?? 0;
    all += count;
    if (boundMs * US_PER_MS > timeoutUs) late += count;
    if (longerThanMs * US_PER_MS >= allowedUs) held += count;
    longerThanMs = boundMs;
  }
  const says =
    `${late} of ${all} took longer than ${options.decisionTimeout} inside the pods, ${held} of ` +
    `them longer than delays of the event loop explain (${loopDelayMs.toFixed(0)} ms)`;
  return { name: "waits", holds: held === 0, says };
}

function longestWaitUs({ decisionTimeout }: RunOptions, loopDelayMs: number): DurationUs {
  return (
    (parseDuration(decisionTimeout) ?? 0) + Math.max(DELAY_MIN_US, 2 * loopDelayMs * US_PER_MS)
  );
}

/** What may come on top of the bound of the mode, in tokens. */
function allowance(
  { limit, steps }: RunOptions,
  { dangers, standing }: Pick<RunResult, "dangers" | "standing">,
): Tokens {
  // The ideal bucket, whose replay starts with the first request, may end a token higher.
  let tokens = 1;
  if (standing.mode !== "hybrid") return tokens;
  for (const { act } of steps) if (act.kind === "add") tokens += JOIN_PART * limit.burst;
  for (const { kind } of dangers) {
    if (kind === "loss") tokens += LOSS_PART * limit.burst;
    if (kind === "failover") tokens += FAILOVER_SECONDS * limit.rate;
  }
  return tokens;
}

/** No interval saw more than burst and refill, and what the mode may pass them by. */
function excessClaim(options: RunOptions, result: RunResult): Claim {
  const { verdict, standing } = result;
  const most = standing.bound + allowance(options, result);
  const { tokens } = verdict.certainExcess;
  const says = `${tokens.toFixed(1)} tokens for certain, at most ${most.toFixed(1)} may be`;
  return { name: "excess", holds: tokens <= most, says };
}

/**
 * What the pods admitted is what the store applied, token by token.
 *
 * A strict limit takes its tokens before they are used, and gives back what nobody used. What is
 * lost is what a stopped server had decided and not yet answered, and what a killed pod held.
 */
function countsClaim(options: RunOptions, result: RunResult): Claim {
  const { count, dangers, journal, standing } = result;
  const { admitted = 0, stored = Number.NaN, denied = 0, settled = false } = count ?? {};
  const denials = denied === 0 ? "" : ` (${denied} denied)`;
  const says = `${admitted} admitted${denials}, ${stored} applied in the store`;
  const losses = dangers.filter(({ kind }) => kind === "loss");
  if (losses.length > 0) {
    return { name: "counts", holds: settled, says: `${says}; its data was lost on the way` };
  }
  const missing = admitted - stored;
  if (missing < 0 && standing.mode !== "hybrid") {
    const most = unansweredTokens(options, result) + unusedByKilled(result);
    const unused = `; ${-missing} were never used, at most ${most} may be`;
    return { name: "counts", holds: settled && -missing <= most, says: says + unused };
  }
  if (missing === 0) return { name: "counts", holds: settled, says };
  const atRisk = tokensAtRisk(dangers, journal);
  const lost = `; ${missing} differ, at most ${atRisk} were at risk`;
  return { name: "counts", holds: settled && missing > 0 && missing <= atRisk, says: says + lost };
}

/**
 * Tokens of calls that a server had decided when it was stopped, and whose answers it could not
 * write any more: in exact mode those of the checks that waited for them, and were denied when
 * their time was up. In leased mode a call also fetches ahead, no more than was lately used.
 */
function unansweredTokens(options: RunOptions, result: RunResult): number {
  const { journal, outagesUs, loopDelayMs, standing } = result;
  const waitUs = longestWaitUs(options, loopDelayMs);
  let tokens = 0;
  for (const { limit, outcome, answeredUs } of journal) {
    if (limit !== LIMIT.counted) continue;
    const isAtRisk = outagesUs.some((us) => {
      if (outcome === OUTCOME.denied) return us <= answeredUs && answeredUs <= us + waitUs;
      const isLeased = standing.mode === "leased" && outcome === OUTCOME.admitted;
      return isLeased && us - LEASE_SPAN_US <= answeredUs && answeredUs <= us;
    });
    if (isAtRisk) tokens += 1;
  }
  return tokens;
}

/** A killed pod gives nothing back: of each lease or call it used, or denied, some. */
function unusedByKilled({ dangers, journal }: RunResult): number {
  const killed = new Set(dangers.flatMap((danger) => (danger.kind === "kill" ? danger.pods : [])));
  let tokens = 0;
  for (const { limit, pod } of journal) if (limit === LIMIT.counted && killed.has(pod)) tokens += 1;
  return tokens;
}

/** Admitted tokens of the counted limit that a failover or a death may have cost. */
function tokensAtRisk(dangers: readonly Danger[], journal: RunResult["journal"]): number {
  let tokens = 0;
  for (const { pod, limit, outcome, answeredUs } of journal) {
    if (limit !== LIMIT.counted || outcome !== OUTCOME.admitted) continue;
    const isAtRisk = dangers.some((danger) => {
      if (danger.kind === "failover")
        return danger.fromUs <= answeredUs && answeredUs <= danger.toUs;
      return danger.kind === "kill" && danger.pods.includes(pod);
    });
    if (isAtRisk) tokens += 1;
  }
  return tokens;
}

/** The pods' own counters and the answers that callers got are two ways to one number. */
function pathsClaim({ count }: RunResult): Claim {
  const differing = count?.differing ?? [];
  const says = differing.length === 0 ? "all pods" : `not ${differing.join(", ")}`;
  return {
    name: "counters",
    holds: differing.length === 0,
    says: `agree with the answers: ${says}`,
  };
}
