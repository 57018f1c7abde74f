/**
 * What the log says about the store: one line when its state changes, and at most one a second when
 * it flaps. An outage may have a second reason that tells more than the first, such as a connection
 * that was lost and then a password that is refused; it gets a line of its own.
 *
 * It keeps no timer. Every exchange and heartbeat tells its outcome, several a second, so that a
 * change that was held back is written by one of the next ones, if it still is a change then.
 */
import type { Logger } from "pino";
import { type InstantUs, US_PER_SECOND } from "../core/units.ts";

/** `up`, or the kind of trouble. */
export type StoreState = "up" | "timeout" | "unreachable" | "refused" | "malformed";

const LINE_INTERVAL_US = US_PER_SECOND;
/** Reasons told in one outage. */
const REASONS_MAX = 2;
/** A store that only flaps needs no second reason. */
const SECOND_REASON_AFTER_US = 3 * US_PER_SECOND;

export class StoreLog {
  readonly #logger: Logger;
  /** A store that answers from the start needs no line of its own. */
  #logged: StoreState = "up";
  #loggedAtUs: InstantUs = Number.NEGATIVE_INFINITY;
  #last: StoreState = "up";
  #degradedAtUs: InstantUs = Number.NEGATIVE_INFINITY;
  /** Reasons told in this outage. */
  readonly #told = new Set<string>();
  /** Changes since the last line, the one being told included. */
  #changes = 0;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /**
   * Takes note of how a call to the store ended.
   *
   * @param nowUs - Monotonic time.
   * @param detail - The trouble in words.
   */
  observe(nowUs: InstantUs, state: StoreState, detail = ""): void {
    if (state !== this.#last) this.#changes += 1;
    this.#last = state;
    if (nowUs - this.#loggedAtUs < LINE_INTERVAL_US) return;
    if (state === this.#logged && !this.#isNews(nowUs, state, detail)) return;
    if (state === "up" || this.#logged === "up") {
      this.#told.clear();
      this.#degradedAtUs = nowUs;
    }
    this.#told.add(detail);
    const fields = { store: state, changes: this.#changes };
    if (state === "up") this.#logger.info(fields, "the store answers again");
    else this.#logger.warn({ ...fields, detail }, "the store is degraded");
    this.#logged = state;
    this.#loggedAtUs = nowUs;
    this.#changes = 0;
  }

  /** Whether the same state has a reason that was not told yet. */
  #isNews(nowUs: InstantUs, state: StoreState, detail: string): boolean {
    if (state === "up" || nowUs - this.#degradedAtUs < SECOND_REASON_AFTER_US) return false;
    return this.#told.size < REASONS_MAX && !this.#told.has(detail);
  }
}
