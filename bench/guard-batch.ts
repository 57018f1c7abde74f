/**
 * A batch over HTTP as the guard counts it: from the complete body to the text of the answer, which
 * is reading the checks, deciding and wording them. The request and its answer are stand-ins, so
 * nothing of Node's is counted; the pod has no store.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Decision } from "../src/core/decision.ts";
import type { Limit } from "../src/core/limit.ts";
import { PodLimiter } from "../src/core/pod-limiter.ts";
import { type InstantUs, US_PER_MS, US_PER_SECOND } from "../src/core/units.ts";
import type { Decider } from "../src/ports/decider.ts";
import { CheckApi } from "../src/server/check-api.ts";

export const BATCH_CHECKS = 100;

/** Between two batches; the buckets are full again. */
const STEP_US = US_PER_MS;

export class BatchCourse {
  readonly #engine: PodLimiter;
  readonly #api: CheckApi;
  readonly #bodies: readonly Buffer[];
  readonly #answer = new Answer();
  #now: InstantUs = US_PER_SECOND;

  /** @param keys - A multiple of `BATCH_CHECKS`; every one is asked for once in a pass. */
  constructor(limit: Limit, keys: number) {
    this.#engine = new PodLimiter(
      {
        limits: [limit],
        sole: true,
        lanes: 1,
        commandTimeoutUs: 50_000,
        decisionTimeoutUs: 10_000,
        keysMax: keys,
        podId: "guard",
      },
      this.#now,
    );
    this.#bodies = Array.from({ length: keys / BATCH_CHECKS }, (_, batch) =>
      bodyOf(limit.name, batch * BATCH_CHECKS),
    );
    this.#api = new CheckApi({
      decider: this.#decider(limit),
      clock: { monotonicUs: () => this.#now },
      rateHeaders: () => {},
      observeUs: () => {},
      fail: (_res, error) => {
        throw error;
      },
    });
  }

  /** The answer to the last batch. */
  get lastBody(): string {
    return this.#answer.body;
  }

  get trackedKeys(): number {
    return this.#engine.counts(this.#now).trackedKeys;
  }

  /** Sends every batch once. */
  pass(): void {
    for (const body of this.#bodies) {
      this.#api.batch(requestOf(body), this.#answer as unknown as ServerResponse);
      if (this.#answer.status !== 200)
        throw new Error(`a batch was answered: ${this.#answer.body}`);
      this.#now += STEP_US;
    }
  }

  #decider(limit: Limit): Decider {
    return {
      decide: (checks) => this.#engine.decide(this.#now, checks) as readonly Decision[],
      report: (check) => this.#engine.report(this.#now, check),
      limit: () => limit,
      limits: () => [limit],
      standing: (of) => this.#engine.standing(of),
    };
  }
}

function bodyOf(limit: string, firstKey: number): Buffer {
  const requests = Array.from({ length: BATCH_CHECKS }, (_, place) => ({
    limit,
    key: `user-${firstKey + place}`,
    cost: 1,
  }));
  return Buffer.from(JSON.stringify({ requests }));
}

/** A request whose body is there as soon as somebody listens. */
function requestOf(body: Buffer): IncomingMessage {
  const request = {
    on: (event: string, listener: (chunk?: Buffer) => void): void => {
      if (event === "data") listener(body);
      if (event === "end") listener();
    },
  };
  return request as unknown as IncomingMessage;
}

/** What was said last. */
class Answer {
  status = 0;
  body = "";

  writeHead(status: number): this {
    this.status = status;
    return this;
  }

  end(body: string): void {
    this.body = body;
  }
}
