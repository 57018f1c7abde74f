/**
 * Forward auth: a proxy asks about each of its requests, and passes it on when the answer is 200.
 *
 * To a proxy every other status is a denial or a fault, and which of the two differs: nginx makes
 * 500 of what is neither 2xx, 401 nor 403; Envoy takes 5xx for a fault of the sidecar, which by
 * default lets the request pass. So what is wrong with the proxy's own configuration (a policy that
 * does not exist, a status that cannot be) is answered 4xx: it stops the traffic at the first try
 * instead of leaving it without a limit. Only limits that are closed while the store is away give
 * 503.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Check, Decision } from "../core/decision.ts";
import type { DurationUs, InstantUs } from "../core/units.ts";
import type { Clock } from "../ports/clock.ts";
import type { Decider } from "../ports/decider.ts";
import type { NamedCheck, Policies } from "../ports/policy.ts";
import { sendEmpty, sendProblem } from "./answer.ts";
import { isClosed } from "./check-api.ts";
import { CHECKS_MAX } from "./check-body.ts";
import { closestName } from "./closest-name.ts";
import { speakingDecision } from "./decision-json.ts";
import { type ForwardRequest, parseForward } from "./forward-request.ts";
import { type RateHeaders, retryAfterSeconds } from "./headers.ts";
import { dropBody } from "./json-body.ts";
import { badRequest, excerpt, limitExceeded, Problem, reducedCapacity } from "./problem.ts";

export interface ForwardOptions {
  readonly policies: Policies;
  /** Told how long each decision took from the head of its request to its answer. */
  readonly observeUs: (duration: DurationUs) => void;
}

export interface ForwardParts extends ForwardOptions {
  readonly decider: Decider;
  readonly clock: Clock;
  readonly rateHeaders: RateHeaders;
  /** Answers a request that met a bug. */
  readonly fail: (res: ServerResponse, error: unknown) => void;
}

export class ForwardApi {
  readonly #parts: ForwardParts;

  constructor(parts: ForwardParts) {
    this.#parts = parts;
  }

  /** @param target - The request target in origin form, for which `isForward` holds. */
  answer(req: IncomingMessage, res: ServerResponse, target: string): void {
    const startedUs = this.#parts.clock.monotonicUs();
    dropBody(req);
    const request = parseForward(req, target);
    const checks = request instanceof Problem ? request : this.#checksOf(request);
    if (request instanceof Problem || checks instanceof Problem) {
      sendProblem(res, checks as Problem);
    } else if (checks.length === 0) {
      sendEmpty(res, 200);
    } else {
      this.#decide(res, checks, request.denyStatus, startedUs);
    }
  }

  #checksOf({ policy, original }: ForwardRequest): readonly Check[] | Problem {
    const { policies } = this.#parts;
    const named =
      policy === undefined ? policies.matching(original) : policies.named(policy, original);
    if (named === undefined) return unknownPolicy(policy ?? "", policies.names);
    if (named.length > CHECKS_MAX) {
      return badRequest(
        "the path can be read in several ways, which together make too many checks",
      );
    }
    return named.map((check) => this.#resolve(check));
  }

  /** @throws {Error} When policies and limits in force do not fit together, which is a bug. */
  #resolve({ limit: name, key, cost }: NamedCheck): Check {
    const limit = this.#parts.decider.limit(name);
    if (limit === undefined)
      throw new Error(`a policy names the limit ${name}, which is not there`);
    return { limit, key, cost };
  }

  #decide(
    res: ServerResponse,
    checks: readonly Check[],
    denyStatus: number,
    startedUs: InstantUs,
  ): void {
    const answer = (decisions: readonly Decision[]): void => {
      const speaking = speakingDecision(decisions);
      const headers: string[] = [];
      this.#parts.rateHeaders(headers, speaking, decisions);
      if (speaking.allowed) sendEmpty(res, 200, headers);
      else sendProblem(res, refusal(speaking, decisions, denyStatus), headers);
      this.#parts.observeUs(this.#parts.clock.monotonicUs() - startedUs);
    };
    const decided = this.#parts.decider.decide(checks);
    if (!(decided instanceof Promise)) answer(decided);
    else decided.then(answer).catch((error: unknown) => this.#parts.fail(res, error));
  }
}

function refusal(speaking: Decision, decisions: readonly Decision[], denyStatus: number): Problem {
  if (isClosed(speaking)) return reducedCapacity(speaking.limit.name);
  const denying = decisions.filter(({ allowed }) => !allowed);
  const names = [...new Set(denying.map(({ limit }) => limit.name))];
  return limitExceeded(denyStatus, names, retryAfterSeconds(speaking));
}

function unknownPolicy(name: string, names: readonly string[]): Problem {
  const closest = closestName(name, names);
  const hint =
    closest === undefined ? "no policies are configured" : `the closest one is "${closest}"`;
  return new Problem(404, `there is no policy ${excerpt(name)}; ${hint}`);
}
