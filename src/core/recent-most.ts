/** The largest of the numbers that held at some instant of the last span of time. */
import type { DurationUs, InstantUs } from "./units.ts";

/**
 * Changes remembered at once; beyond it the two oldest count as one, held for as long as the
 * later.
 */
const NOTED_MAX = 256;

interface Noted {
  readonly value: number;
  /** Until when it held, as far as is known. */
  readonly at: InstantUs;
}

export class RecentMost {
  /** Falling values with rising instants: what a later and larger value outdates is gone. */
  #noted: Noted[] = [];
  readonly #spanUs: DurationUs;
  #last: number | undefined;

  constructor(spanUs: DurationUs) {
    this.#spanUs = spanUs;
  }

  /** Undefined until the first number was noted. */
  get most(): number | undefined {
    return this.#noted[0]?.value;
  }

  /** The number that holds now. */
  get last(): number | undefined {
    return this.#last;
  }

  /** The number was seen at `now`; nobody knows what it was in between. */
  seen(now: InstantUs, value: number): void {
    this.#push(now, value);
    this.#last = value;
  }

  /** Another number holds from `now` on; the one before held until `now`. */
  changed(now: InstantUs, value: number): void {
    this.age(now);
    this.seen(now, value);
  }

  /** The last number still holds at `now`. */
  age(now: InstantUs): void {
    if (this.#last !== undefined) this.#push(now, this.#last);
  }

  #push(now: InstantUs, value: number): void {
    const horizon = now - this.#spanUs;
    this.#noted = this.#noted.filter((past) => past.value > value && past.at > horizon);
    this.#noted.push({ value, at: now });
    if (this.#noted.length > NOTED_MAX) {
      const [first, second] = this.#noted as [Noted, Noted];
      this.#noted.splice(0, 2, { value: first.value, at: second.at });
    }
  }
}
