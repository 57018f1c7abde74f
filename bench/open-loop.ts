/**
 * An open loop: requests are sent when they are due, whatever the answers, and times count from
 * when a request was due, so that neither a late client nor a server that stands still is left out.
 *
 * Timers of Node come once a millisecond at best, which would be in every figure. Where the client
 * has a core to itself it asks the clock again and again instead, between the events of its
 * sockets. How late requests were sent all the same is told with the times.
 */
import { monotonicUs } from "../fleet/monotonic.ts";
import { Pace } from "../fleet/pace.ts";
import { type InstantUs, US_PER_MS, US_PER_SECOND } from "../src/core/units.ts";

/**
 * What the client does until the next request is due. `spinning`: it asks the clock without a
 * pause. `yielding`: it does so only while it awaits no answer, since somebody who works for the
 * answer shares its core. `sleeping`: there is no core for it, and it wakes once a millisecond.
 */
export type Waiting = "spinning" | "yielding" | "sleeping";

export interface PaceOrder {
  /** Requests that are due a second, evenly spaced. */
  readonly perSecond: number;
  readonly seconds: number;
  readonly waiting: Waiting;
}

/** Sends one request. @param dueUs - When it was due, at or before now. */
export type Offer = (dueUs: InstantUs) => void;

const WAKE_MS = 1;
/** Answers are waited for as long as this after the last request. */
const LAST_ANSWER_WITHIN_MS = 5_000;

export class OpenLoop {
  readonly #times: number[] = [];
  readonly #late: number[] = [];
  #timer: NodeJS.Timeout | undefined;
  #turn: () => void = () => {};
  #onIdle: () => void = () => {};

  /** Milliseconds from when each answered request was due to its answer. */
  get times(): readonly number[] {
    return this.#times;
  }

  /** Milliseconds by which each request was sent after it was due. */
  get late(): readonly number[] {
    return this.#late;
  }

  /** Tells that a request has its answer. */
  answered(dueUs: InstantUs): void {
    this.#times.push(sinceMs(dueUs));
    if (this.#underWay === 0) this.#onIdle();
    if (this.#timer === undefined) return;
    // The answer woke the client, which may as well look at the clock.
    clearTimeout(this.#timer);
    this.#timer = undefined;
    setImmediate(this.#turn);
  }

  /**
   * Keeps the pace and waits for the last answer.
   *
   * @param flush - Called after each burst of offers.
   * @throws {Error} When an answer does not come.
   */
  async run(order: PaceOrder, offer: Offer, flush: () => void = () => {}): Promise<void> {
    await this.#keepPace(order, offer, flush);
    if (this.#underWay > 0) await this.#lastAnswer();
  }

  #keepPace(order: PaceOrder, offer: Offer, flush: () => void): Promise<void> {
    const startUs = monotonicUs();
    // What is due at the very end would belong to the next round.
    const endUs = startUs + order.seconds * US_PER_SECOND - 1;
    const pace = new Pace(startUs, order.perSecond, 0);
    return new Promise((resolve) => {
      this.#turn = () => {
        const nowUs = Math.min(endUs, monotonicUs());
        for (let due = pace.next(nowUs); due !== undefined; due = pace.next(nowUs)) {
          this.#late.push(sinceMs(due));
          offer(due);
        }
        flush();
        if (nowUs === endUs) resolve();
        else this.#wait(order.waiting);
      };
      this.#turn();
    });
  }

  #wait(waiting: Waiting): void {
    const isSpinning = waiting === "spinning" || (waiting === "yielding" && this.#underWay === 0);
    if (isSpinning) setImmediate(this.#turn);
    else
      this.#timer = setTimeout(() => {
        this.#timer = undefined;
        this.#turn();
      }, WAKE_MS);
  }

  #lastAnswer(): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new Error(`${this.#underWay} requests have no answer after 5 s`));
      }, LAST_ANSWER_WITHIN_MS);
      this.#onIdle = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  get #underWay(): number {
    return this.#late.length - this.#times.length;
  }
}

function sinceMs(instantUs: InstantUs): number {
  return (monotonicUs() - instantUs) / US_PER_MS;
}
