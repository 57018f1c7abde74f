/**
 * What the log says about the store: one line when its state changes, and at most one a second when
 * it flaps.
 *
 * It keeps no timer. Every exchange and heartbeat tells its outcome, several a second, so that a
 * change that was held back is written by one of the next ones, if it still is a change then.
 */
import type { Logger } from "pino";
import { type InstantUs, US_PER_SECOND } from "../core/units.ts";

/** `up`, or the kind of trouble. */
export type StoreState = "up" | "timeout" | "unreachable" | "refused" | "malformed";

const LINE_INTERVAL_US = US_PER_SECOND;

export class StoreLog {
  readonly #logger: Logger;
  /** A store that answers from the start needs no line of its own. */
  #logged: StoreState = "up";
  #loggedAtUs: InstantUs = Number.NEGATIVE_INFINITY;
  #last: StoreState = "up";
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
    if (state === this.#logged || nowUs - this.#loggedAtUs < LINE_INTERVAL_US) return;
    const fields = { store: state, changes: this.#changes };
    if (state === "up") this.#logger.info(fields, "the store answers again");
    else this.#logger.warn({ ...fields, detail }, "the store is degraded");
    this.#logged = state;
    this.#loggedAtUs = nowUs;
    this.#changes = 0;
  }
}
