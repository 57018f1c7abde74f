/**
 * Checks in the Redis protocol: `ALIQUOT.CHECK` for configured limits, and `CL.THROTTLE`, which
 * redis-cell made known, for limits that the caller brings. Both answer five integers.
 *
 * A check that the pod decides by itself goes from the bytes of its request to the bytes of its
 * reply in one call without a promise.
 */
import { isUtf8 } from "node:buffer";
import type { Check, Decision } from "../../core/decision.ts";
import { type Limit, limitForKey } from "../../core/limit.ts";
import { SHAPED_SPAN_SECONDS_MAX, SHAPED_TOKENS_MAX } from "../../core/shaped-limits.ts";
import { type DurationUs, type InstantUs, US_PER_SECOND } from "../../core/units.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Decider } from "../../ports/decider.ts";
import { CHECKS_MAX, COST_MAX, KEY_BYTES_MAX, unknownLimit } from "../check-body.ts";
import { speakingDecision } from "../decision-json.ts";
import { reducedCapacity } from "../problem.ts";
import { type InlineLimit, InlineLimits } from "./inline-limits.ts";
import type { ReplyWriter } from "./reply-writer.ts";
import { printable, type Request } from "./request.ts";

/** What the configuration in force says about limits that callers bring. */
export interface InlineTermsInForce {
  /** Stands for all of them; undefined when callers may bring none. */
  readonly inlineLimit: Limit | undefined;
  readonly inlineLimitsMax: number;
}

export interface CheckParts {
  readonly decider: Decider;
  readonly clock: Clock;
  readonly inline: () => InlineTermsInForce;
  /** Told how long each check took, from its request to its reply. */
  readonly observeUs: (duration: DurationUs) => void;
}

/** The reply to a request that waits for the store; undefined when it is written already. */
export type Later = Promise<Buffer> | undefined;

const CHECK_USAGE =
  "ERR wrong number of arguments for 'aliquot.check' command; it takes limit key [cost], " +
  `or 2 to ${CHECKS_MAX} times limit key cost`;
const THROTTLE_USAGE =
  "ERR wrong number of arguments for 'cl.throttle' command; it takes " +
  "key max_burst count period [quantity]";
const NO_INLINE =
  "ERR callers may bring no limits here: resp.inline_limits is not true in the configuration; " +
  "ALIQUOT.CHECK takes configured ones";

export class CheckCommands {
  readonly #parts: CheckParts;
  readonly #writer: ReplyWriter;
  readonly #inline: InlineLimits;
  #lastName = "";

  constructor(parts: CheckParts, writer: ReplyWriter) {
    this.#parts = parts;
    this.#writer = writer;
    this.#inline = new InlineLimits(() => parts.inline().inlineLimitsMax);
  }

  /** `ALIQUOT.CHECK limit key [cost]`, or several `limit key cost`, all or nothing. */
  check(request: Request): Later {
    const startedUs = this.#parts.clock.monotonicUs();
    const given = request.count - 1;
    const isOne = given === 2 || given === 3;
    if (!isOne && (given < 6 || given % 3 !== 0 || given > 3 * CHECKS_MAX)) {
      this.#writer.error(CHECK_USAGE);
      return undefined;
    }
    const checks: Check[] = [];
    for (let first = 1; first < request.count; first += 3) {
      const check = this.#readCheck(request, first);
      if (typeof check === "string") {
        this.#writer.error(check);
        return undefined;
      }
      checks.push(check);
    }
    const decided = this.#parts.decider.decide(checks);
    if (!(decided instanceof Promise)) {
      this.#answer(decided, startedUs);
      return undefined;
    }
    return decided.then((decisions) => {
      this.#answer(decisions, startedUs);
      return this.#writer.take();
    });
  }

  /** `CL.THROTTLE key max_burst count period [quantity]`. */
  throttle(request: Request): Later {
    const startedUs = this.#parts.clock.monotonicUs();
    if (request.count !== 5 && request.count !== 6) {
      this.#writer.error(THROTTLE_USAGE);
      return undefined;
    }
    const asked = this.#readThrottle(request, startedUs);
    if (typeof asked === "string") {
      this.#writer.error(asked);
      return undefined;
    }
    const { check, inline } = asked;
    const decided = this.#parts.decider.decide([check]);
    if (!(decided instanceof Promise)) {
      this.#answerThrottle(decided, check, inline, startedUs);
      return undefined;
    }
    return decided.then((decisions) => {
      this.#answerThrottle(decisions, check, inline, startedUs);
      return this.#writer.take();
    });
  }

  /** The check whose limit is argument `first`, or what is wrong with it. */
  #readCheck(request: Request, first: number): Check | string {
    const { decider } = this.#parts;
    if (!request.isText(first, this.#lastName)) this.#lastName = request.latin1(first);
    const limit = decider.limit(this.#lastName);
    if (limit === undefined) {
      const name = printable(Buffer.from(this.#lastName, "latin1"));
      return `ERR ${unknownLimit(name, decider.limits()).detail}`;
    }
    const key = readKey(request, first + 1);
    if (key === undefined) return keyFault(request, first + 1);
    const cost = first + 2 < request.count ? request.wholeNumber(first + 2) : 1;
    if (!(cost >= 0 && cost <= COST_MAX)) {
      return numberFault("cost", 0, COST_MAX, request, first + 2);
    }
    return { limit, key, cost };
  }

  #readThrottle(
    request: Request,
    now: InstantUs,
  ): { readonly check: Check; readonly inline: InlineLimit } | string {
    const { inlineLimit: limit } = this.#parts.inline();
    if (limit === undefined) return NO_INLINE;
    const key = readKey(request, 1);
    if (key === undefined) return keyFault(request, 1);
    const burst = request.wholeNumber(2) + 1;
    if (!(burst >= 1 && burst <= SHAPED_TOKENS_MAX)) {
      return numberFault("max_burst", 0, SHAPED_TOKENS_MAX - 1, request, 2);
    }
    const tokens = request.wholeNumber(3);
    if (!(tokens >= 1 && tokens <= SHAPED_TOKENS_MAX)) {
      return numberFault("count", 1, SHAPED_TOKENS_MAX, request, 3);
    }
    const spanSeconds = request.wholeNumber(4);
    if (!(spanSeconds >= 1 && spanSeconds <= SHAPED_SPAN_SECONDS_MAX)) {
      return numberFault("period", 1, SHAPED_SPAN_SECONDS_MAX, request, 4);
    }
    const cost = request.count > 5 ? request.wholeNumber(5) : 1;
    if (!(cost >= 0 && cost <= COST_MAX)) {
      return numberFault("quantity", 0, COST_MAX, request, 5);
    }
    const inline = this.#inline.find({ tokens, spanSeconds, burst }, now);
    if (inline === undefined) return this.#tooMany();
    const shaped = inline.prefix + key;
    if (limitForKey(limit, shaped) === limit) {
      return (
        `ERR a burst of ${burst} with ${tokens} tokens in ${spanSeconds} s cannot be counted ` +
        "exactly; choose a smaller max_burst or a shorter period"
      );
    }
    return { check: { limit, key: shaped, cost }, inline };
  }

  #tooMany(): string {
    return (
      `ERR callers of this pod bring ${this.#inline.size} limits already, and ` +
      `resp.max_inline_limits is ${this.#inline.most}; use the same max_burst, count and period ` +
      "for more keys, or raise it"
    );
  }

  #answer(decisions: readonly Decision[], startedUs: InstantUs): void {
    const { observeUs, clock } = this.#parts;
    const speaking = speakingDecision(decisions);
    this.#write(speaking, !speaking.allowed);
    observeUs(clock.monotonicUs() - startedUs);
  }

  /** A quantity of 0 is never limited: so it is with redis-cell, and nothing is asked for. */
  #answerThrottle(
    decisions: readonly Decision[],
    check: Check,
    inline: InlineLimit,
    startedUs: InstantUs,
  ): void {
    const { observeUs, clock } = this.#parts;
    const decision = decisions[0] as Decision;
    const now = clock.monotonicUs();
    this.#inline.note(inline, now, decision.resetAfterUs);
    this.#write(decision, !decision.allowed && check.cost > 0);
    observeUs(now - startedUs);
  }

  #write(decision: Decision, isLimited: boolean): void {
    const { limit, remaining, retryAfterUs, resetAfterUs } = decision;
    if (!decision.allowed && decision.reason === "store_unavailable") {
      this.#writer.error(`UNAVAILABLE ${reducedCapacity(limit.name).detail}`);
      return;
    }
    const retryAfter =
      isLimited && retryAfterUs !== Number.POSITIVE_INFINITY
        ? Math.max(1, wholeSeconds(retryAfterUs))
        : -1;
    const resetAfter = wholeSeconds(resetAfterUs);
    this.#writer.fiveIntegers(isLimited ? 1 : 0, limit.burst, remaining, retryAfter, resetAfter);
  }
}

/** Undefined when it is no key. Keys are compared byte for byte, so they must be UTF-8. */
function readKey(request: Request, index: number): string | undefined {
  const [start, end] = [request.start(index), request.end(index)];
  if (end === start || end - start > KEY_BYTES_MAX) return undefined;
  const { bytes } = request;
  let isAscii = true;
  for (let at = start; at < end && isAscii; at += 1) isAscii = (bytes[at] as number) < 0x80;
  if (isAscii) return bytes.toString("latin1", start, end);
  return isUtf8(request.slice(index)) ? bytes.toString("utf8", start, end) : undefined;
}

function keyFault(request: Request, index: number): string {
  const length = request.end(index) - request.start(index);
  if (length >= 1 && length <= KEY_BYTES_MAX) return "ERR key is not UTF-8";
  return `ERR key must have 1 to ${KEY_BYTES_MAX} bytes, got ${length}`;
}

function numberFault(
  name: string,
  least: number,
  most: number,
  request: Request,
  index: number,
): string {
  const shown = request.shown(index);
  return `ERR ${name} must be a whole number from ${least} to ${most}, got ${shown}`;
}

/** Rounded up, so that who waits so long has waited enough. */
function wholeSeconds(us: DurationUs): number {
  return Math.ceil(us / US_PER_SECOND);
}
