/**
 * Checks and reports over HTTP.
 *
 * `POST /v1/check` is the hot path: when the pod decides by itself, which is the rule, everything
 * from the last byte of the body to the answer happens in one call without a promise. A check that
 * waits for the store is answered when its promise settles; Node keeps the answers of a connection
 * in order meanwhile, and drops the answer of a connection that is gone.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Decision } from "../core/decision.ts";
import type { DurationUs, InstantUs } from "../core/units.ts";
import type { Clock } from "../ports/clock.ts";
import type { Decider } from "../ports/decider.ts";
import { sendJson, sendProblem } from "./answer.ts";
import {
  BATCH_REQUESTS_MAX,
  type CheckRequest,
  parseBatch,
  parseCheck,
  parseCheckRequest,
  parseReport,
} from "./check-body.ts";
import { checkJson, speakingDecision } from "./decision-json.ts";
import type { RateHeaders } from "./headers.ts";
import { parseJson, readBody } from "./json-body.ts";
import { plainBatch, plainBody, plainTarget } from "./plain-check.ts";
import { badRequest, excerpt, Problem, reducedCapacity } from "./problem.ts";

export interface CheckApiParts {
  readonly decider: Decider;
  readonly clock: Clock;
  readonly rateHeaders: RateHeaders;
  /** Told how long each check, or batch of checks, took from its last byte to its answer. */
  readonly observeUs: (duration: DurationUs) => void;
  /** Answers a request that met a bug. */
  readonly fail: (res: ServerResponse, error: unknown) => void;
}

export class CheckApi {
  readonly #parts: CheckApiParts;

  constructor(parts: CheckApiParts) {
    this.#parts = parts;
  }

  /** @param denyStatus - Status of an answer that says no. */
  check(req: IncomingMessage, res: ServerResponse, denyStatus: number): void {
    readBody(req, (bytes) => {
      try {
        const startedUs = this.#parts.clock.monotonicUs();
        const request = this.#requestOf(bytes);
        if (request instanceof Problem) sendProblem(res, request);
        else this.#decide(res, request, denyStatus, startedUs);
      } catch (error) {
        this.#parts.fail(res, error);
      }
    });
  }

  #requestOf(bytes: Buffer | Problem): CheckRequest | Problem {
    if (bytes instanceof Problem) return bytes;
    const plain = plainBody(bytes, this.#parts.decider);
    if (plain !== undefined) return { checks: [plain], several: false };
    const body = parseJson(bytes);
    return body instanceof Problem ? body : parseCheckRequest(body, this.#parts.decider);
  }

  /** @returns False when the target is not plain: nothing was answered. */
  checkByPlainTarget(res: ServerResponse, target: string): boolean {
    const startedUs = this.#parts.clock.monotonicUs();
    const check = plainTarget(target, this.#parts.decider);
    if (check === undefined) return false;
    this.#decide(res, { checks: [check], several: false }, 200, startedUs);
    return true;
  }

  checkByQuery(res: ServerResponse, query: ReadonlyMap<string, string>, denyStatus: number): void {
    const startedUs = this.#parts.clock.monotonicUs();
    const check = parseCheck(
      { limit: query.get("limit"), key: query.get("key"), cost: costInQuery(query.get("cost")) },
      "",
      this.#parts.decider,
    );
    if (check instanceof Problem) sendProblem(res, check);
    else this.#decide(res, { checks: [check], several: false }, denyStatus, startedUs);
  }

  #decide(
    res: ServerResponse,
    { checks, several }: CheckRequest,
    denyStatus: number,
    startedUs: InstantUs,
  ): void {
    const decided = this.#parts.decider.decide(checks);
    if (!(decided instanceof Promise)) {
      this.#answer(res, decided, several, denyStatus, startedUs);
      return;
    }
    decided
      .then((decisions) => this.#answer(res, decisions, several, denyStatus, startedUs))
      .catch((error: unknown) => this.#parts.fail(res, error));
  }

  #answer(
    res: ServerResponse,
    decisions: readonly Decision[],
    several: boolean,
    denyStatus: number,
    startedUs: InstantUs,
  ): void {
    const { rateHeaders, observeUs, clock } = this.#parts;
    const speaking = speakingDecision(decisions);
    const headers: string[] = [];
    rateHeaders(headers, speaking, decisions);
    if (isClosed(speaking)) {
      sendProblem(res, reducedCapacity(speaking.limit.name), headers);
    } else {
      const status = speaking.allowed ? 200 : denyStatus;
      sendJson(res, status, checkJson(speaking, decisions, several), headers);
    }
    observeUs(clock.monotonicUs() - startedUs);
  }

  batch(req: IncomingMessage, res: ServerResponse): void {
    readBody(req, (bytes) => {
      try {
        const startedUs = this.#parts.clock.monotonicUs();
        const results = this.#batchResults(bytes);
        if (results instanceof Problem) sendProblem(res, results);
        else this.#answerBatch(res, results, startedUs);
      } catch (error) {
        this.#parts.fail(res, error);
      }
    });
  }

  #answerBatch(
    res: ServerResponse,
    results: readonly (string | Promise<string>)[],
    startedUs: InstantUs,
  ): void {
    const answer = (texts: readonly string[]): void => {
      sendJson(res, 200, `{"results":[${texts.join(",")}]}`);
      this.#parts.observeUs(this.#parts.clock.monotonicUs() - startedUs);
    };
    if (results.every((result) => typeof result === "string")) answer(results);
    else
      Promise.all(results)
        .then(answer)
        .catch((error) => this.#parts.fail(res, error));
  }

  #batchResults(bytes: Buffer | Problem): readonly (string | Promise<string>)[] | Problem {
    if (bytes instanceof Problem) return bytes;
    const { decider } = this.#parts;
    const plain = plainBatch(bytes, BATCH_REQUESTS_MAX, decider);
    if (plain !== undefined) {
      return plain.map((check) => this.#batchResult({ checks: [check], several: false }));
    }
    const body = parseJson(bytes);
    const requests = body instanceof Problem ? body : parseBatch(body);
    if (requests instanceof Problem) return requests;
    return requests.map((each) => this.#batchResult(parseCheckRequest(each, decider)));
  }

  /** One request of a batch as JSON; its faults are its own and stop none of the others. */
  #batchResult(request: CheckRequest | Problem): string | Promise<string> {
    if (request instanceof Problem) return errorResult(request);
    const result = (decisions: readonly Decision[]): string => {
      const speaking = speakingDecision(decisions);
      return isClosed(speaking)
        ? errorResult(reducedCapacity(speaking.limit.name))
        : checkJson(speaking, decisions, request.several);
    };
    const decided = this.#parts.decider.decide(request.checks);
    return decided instanceof Promise ? decided.then(result) : result(decided);
  }

  report(req: IncomingMessage, res: ServerResponse): void {
    this.#withBody(req, res, (body) => {
      const check = parseReport(body, this.#parts.decider);
      if (check instanceof Problem) {
        sendProblem(res, check);
        return;
      }
      const state = this.#parts.decider.report(check);
      sendJson(res, 200, checkJson(state, [state], false));
    });
  }

  /** Runs `use` with the parsed body, or answers with what is wrong with it. */
  #withBody(req: IncomingMessage, res: ServerResponse, use: (body: unknown) => void): void {
    readBody(req, (bytes) => {
      try {
        const body = bytes instanceof Problem ? bytes : parseJson(bytes);
        if (body instanceof Problem) sendProblem(res, body);
        else use(body);
      } catch (error) {
        this.#parts.fail(res, error);
      }
    });
  }
}

/** The status of a denial as the query asks for it. */
export function denyStatusIn(query: ReadonlyMap<string, string>): number | Problem {
  const text = query.get("deny_status");
  if (text === undefined || text === "200") return 200;
  if (text === "429") return 429;
  return badRequest(`deny_status must be 200 or 429, got ${excerpt(text)}`);
}

/** A cost in a query as the number it spells; anything else is left for the check to refuse. */
function costInQuery(text: string | undefined): number | string | undefined {
  return text !== undefined && /^-?\d{1,15}$/.test(text) ? Number(text) : text;
}

/** The limit is closed while the store is away. */
export function isClosed(decision: Decision): boolean {
  return !decision.allowed && decision.reason === "store_unavailable";
}

function errorResult(problem: Problem): string {
  return `{"error":${problem.json()}}`;
}
