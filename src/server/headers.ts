/**
 * Rate limit headers of an answer, in the shapes that clients know.
 *
 * `ietf` is draft-ietf-httpapi-ratelimit-headers-10. The `X-RateLimit-*` shapes share their names
 * and differ in what reset means, so at most one of them can be in use.
 */
import type { Decision } from "../core/decision.ts";
import { ceilToSeconds, US_PER_SECOND } from "../core/units.ts";
import { textOf } from "./limit-text.ts";

export type HeaderShape = "ietf" | "x-delta" | "x-epoch" | "draft-03";

/**
 * Appends names and values, in turn, to `out`.
 *
 * @param speaking - The decision that speaks for the check.
 * @param decisions - All decisions of the check.
 */
export type RateHeaders = (
  out: string[],
  speaking: Decision,
  decisions: readonly Decision[],
) => void;

/** Which shapes to write; a function where a reload may change them. */
export type HeaderShapes = readonly HeaderShape[] | (() => readonly HeaderShape[]);

/**
 * Makes the writer of rate limit headers.
 *
 * @param wallMs - Wall clock in ms since the epoch; only `x-epoch` asks it.
 * @throws {RangeError} When two shapes would use the same header names.
 */
export function createRateHeaders(shapes: HeaderShapes, wallMs: () => number): RateHeaders {
  if (typeof shapes !== "function") return fixedRateHeaders(shapes, wallMs);
  let known = shapes();
  let write = fixedRateHeaders(known, wallMs);
  return (out, speaking, decisions) => {
    const current = shapes();
    if (current !== known) {
      known = current;
      write = fixedRateHeaders(current, wallMs);
    }
    write(out, speaking, decisions);
  };
}

function fixedRateHeaders(shapes: readonly HeaderShape[], wallMs: () => number): RateHeaders {
  const legacy = [...new Set(shapes)].filter((shape) => shape !== "ietf");
  if (legacy.length > 1) {
    throw new RangeError(
      `headers: ${legacy.join(" and ")} use the same header names; choose one of them`,
    );
  }
  const ietf = shapes.includes("ietf");
  const shape = legacy[0];
  return (out, speaking, decisions) => {
    if (ietf) appendIetf(out, speaking, decisions);
    if (shape !== undefined) appendLegacy(out, speaking, shape, wallMs);
    const wait = retryAfterSeconds(speaking);
    if (wait !== undefined) out.push("Retry-After", String(wait));
  };
}

/**
 * The wait to advertise, in whole seconds, at least 1: undefined when nothing was denied, and when
 * waiting cannot help because the cost is above the burst.
 */
export function retryAfterSeconds(decision: Decision): number | undefined {
  if (decision.allowed || !Number.isFinite(decision.retryAfterUs)) return undefined;
  return Math.max(1, ceilToSeconds(decision.retryAfterUs));
}

function appendIetf(out: string[], speaking: Decision, decisions: readonly Decision[]): void {
  const text = textOf(speaking.limit);
  out.push("RateLimit-Policy", decisions.length === 1 ? text.policy : policies(decisions));
  const seconds = secondsUntilMore(speaking, text.tokenUs);
  const t = seconds === undefined ? "" : `;t=${seconds}`;
  out.push("RateLimit", `${text.rateLimit}${speaking.remaining}${t}`);
}

/** Every limit of the check once, in order: the policy does not depend on the verdict. */
function policies(decisions: readonly Decision[]): string {
  return [...new Set(decisions.map((decision) => textOf(decision.limit).policy))].join(", ");
}

/**
 * The `t` of the draft: seconds until there is more than `remaining`. A denied caller is told the
 * wait of its check, so that `Retry-After` is never earlier; one that has tokens left is told when
 * the bucket is full, so that pacing by r/t keeps the rate; one that took the last token is told
 * when the next one comes.
 */
function secondsUntilMore(decision: Decision, tokenUs: number): number | undefined {
  if (!decision.allowed) return retryAfterSeconds(decision);
  if (decision.remaining > 0) return ceilToSeconds(decision.resetAfterUs);
  return ceilToSeconds(Math.min(decision.resetAfterUs, tokenUs));
}

function appendLegacy(
  out: string[],
  decision: Decision,
  shape: Exclude<HeaderShape, "ietf">,
  wallMs: () => number,
): void {
  const text = textOf(decision.limit);
  const resetSeconds =
    shape === "x-epoch"
      ? ceilToSeconds(wallMs() * (US_PER_SECOND / 1_000) + decision.resetAfterUs)
      : ceilToSeconds(decision.resetAfterUs);
  out.push("X-RateLimit-Limit", shape === "draft-03" ? text.draft03 : text.burst);
  out.push("X-RateLimit-Remaining", String(decision.remaining));
  out.push("X-RateLimit-Reset", String(resetSeconds));
}
