/**
 * Closed loop: clients that try again after a denial, as real clients do. How they wait decides
 * whether an overload ends or feeds itself.
 */
import type { DurationUs, InstantUs } from "../../src/core/units.ts";
import type { Prng } from "../prng.ts";
import type { Answer, SimCheck } from "../scheme.ts";
import { ANY_POD, type Arrival, type Workload, type WorkloadRun } from "../workload.ts";

/**
 * `none`: again after a fixed short wait. `exponential`: full jitter below a cap that doubles.
 * `retry-after`: exactly when the header says, which knows whole seconds only, rounded up.
 * `retry-after-jitter`: then, or up to as long again later.
 */
export type Backoff = "none" | "exponential" | "retry-after" | "retry-after-jitter";

export interface RetryStorm {
  readonly clients: number;
  /** Mean time of a client between a success (or giving up) and its next task. */
  readonly thinkUs: DurationUs;
  readonly backoff: Backoff;
  /** Attempts before a task is given up. */
  readonly attemptsMax?: number;
  /** Wait of `none`, first cap of `exponential`. */
  readonly waitUs?: DurationUs;
  readonly limit?: number;
  readonly key?: string;
}

/** An exponential backoff grows no further than this. */
const BACKOFF_MAX_US = 10_000_000;

export function retryStorm(storm: RetryStorm): Workload {
  return {
    summary: `${storm.clients} clients that retry, backoff: ${storm.backoff}`,
    start: ({ random }) => new Clients(storm, random),
  };
}

class Clients implements WorkloadRun {
  readonly #storm: Required<RetryStorm>;
  readonly #random: Prng;
  readonly #checks: readonly SimCheck[];
  /** First tasks, in order of time. */
  readonly #first: Arrival[];
  readonly #attempts: number[];

  constructor(storm: RetryStorm, random: Prng) {
    const { attemptsMax = 10, waitUs = 50_000, limit = 0, key = "k" } = storm;
    this.#storm = { ...storm, attemptsMax, waitUs, limit, key };
    this.#random = random;
    this.#checks = [{ limit, key, cost: 1 }];
    this.#attempts = new Array<number>(storm.clients + 1).fill(1);
    this.#first = Array.from({ length: storm.clients }, (_, i) =>
      this.#arrival(random.exponential(storm.thinkUs), i + 1),
    ).sort((a, b) => b.atUs - a.atUs);
  }

  next(): Arrival | undefined {
    return this.#first.pop();
  }

  answered(nowUs: InstantUs, { client }: Arrival, answer: Answer): Arrival {
    const attempt = this.#attempts[client] ?? 1;
    if (answer.allowed || attempt >= this.#storm.attemptsMax) {
      this.#attempts[client] = 1;
      return this.#arrival(nowUs + this.#random.exponential(this.#storm.thinkUs), client);
    }
    this.#attempts[client] = attempt + 1;
    return this.#arrival(nowUs + this.#wait(attempt, answer.retryAfterUs), client);
  }

  #wait(attempt: number, retryAfterUs: DurationUs): DurationUs {
    const { backoff, waitUs } = this.#storm;
    // Not finite: this request can never pass. A client that retries all the same waits longest.
    const seconds = Math.max(1, Math.ceil(retryAfterUs / 1e6));
    const told = Math.min(BACKOFF_MAX_US, seconds * 1e6);
    switch (backoff) {
      case "none":
        return waitUs;
      case "exponential":
        return this.#random.between(0, Math.min(BACKOFF_MAX_US, waitUs * 2 ** attempt));
      case "retry-after":
        return told;
      case "retry-after-jitter":
        return told * this.#random.between(1, 2);
    }
  }

  #arrival(atUs: InstantUs, client: number): Arrival {
    return { atUs: Math.ceil(atUs), pod: ANY_POD, client, checks: this.#checks };
  }
}
