/**
 * One call of ShouldRateLimit, from the bytes of its request to those of its answer, whichever way
 * they came. It never throws and never answers UNKNOWN: a caller could not tell that from a broken
 * network.
 */
import { status } from "@grpc/grpc-js";
import type { DurationUs, InstantUs } from "../../core/units.ts";
import type { Clock } from "../../ports/clock.ts";
import type { RateLimitAnswer, RateLimitService } from "../rate-limit-service.ts";
import { RefusedRequest } from "../refused-request.ts";
import { decodeRateLimitRequest, encodeRateLimitResponse } from "./rate-limit-codec.ts";

export interface RateLimitCallParts {
  readonly service: RateLimitService;
  readonly clock: Clock;
  /** Told how long each call took from its request to its answer. */
  readonly observeUs: (duration: DurationUs) => void;
  /** A call met a bug. It was answered with UNAVAILABLE. */
  readonly onUnexpectedError: (error: unknown) => void;
}

/** A call that ends with another status than OK. */
export class RefusedCall {
  readonly code: number;
  readonly details: string;

  constructor(code: number, details: string) {
    this.code = code;
    this.details = details;
  }
}

/** The response with the head of its frame, or why there is none. */
export type CallAnswer = Buffer | RefusedCall;

export class RateLimitCalls {
  readonly #parts: RateLimitCallParts;

  constructor(parts: RateLimitCallParts) {
    this.#parts = parts;
  }

  /**
   * Answers at once when the pod decides by itself.
   *
   * @param message - Read before this returns; its bytes may change after.
   */
  answer(message: Buffer): CallAnswer | Promise<CallAnswer> {
    const startedUs = this.#parts.clock.monotonicUs();
    try {
      const request = decodeRateLimitRequest(message);
      // Bytes that are no message come as a sentence.
      const decided =
        typeof request === "string"
          ? new RefusedRequest(`the request is no RateLimitRequest: ${request}`)
          : this.#parts.service.shouldRateLimit(request);
      if (!(decided instanceof Promise)) return this.#conclude(decided, startedUs);
      return decided
        .then((answer) => this.#conclude(answer, startedUs))
        .catch((error: unknown) => this.#fail(error));
    } catch (error) {
      return this.#fail(error);
    }
  }

  #conclude(decided: RateLimitAnswer, startedUs: InstantUs): CallAnswer {
    const answer =
      decided instanceof RefusedRequest ? refused(decided) : encodeRateLimitResponse(decided);
    this.#parts.observeUs(this.#parts.clock.monotonicUs() - startedUs);
    return answer;
  }

  #fail(error: unknown): RefusedCall {
    this.#parts.onUnexpectedError(error);
    return new RefusedCall(status.UNAVAILABLE, "the sidecar met a fault of its own");
  }
}

function refused({ closedLimit, message }: RefusedRequest): RefusedCall {
  const isCallersFault = closedLimit === undefined;
  return new RefusedCall(isCallersFault ? status.INVALID_ARGUMENT : status.UNAVAILABLE, message);
}
