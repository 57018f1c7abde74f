/** Rows or checks, by number, to be looked at again at an instant, earliest first: a heap. */
import type { InstantUs } from "./units.ts";

export class WakeHeap {
  readonly #instants: InstantUs[] = [];
  readonly #numbers: number[] = [];

  /** The earliest instant; Infinity when there is none. */
  get nextAt(): InstantUs {
    return this.#instants[0] ?? Number.POSITIVE_INFINITY;
  }

  /** The number with the earliest instant. */
  get first(): number | undefined {
    return this.#numbers[0];
  }

  push(at: InstantUs, number: number): void {
    let child = this.#instants.length;
    this.#instants.push(at);
    this.#numbers.push(number);
    while (child > 0) {
      const parent = (child - 1) >> 1;
      if ((this.#instants[parent] as number) <= at) break;
      this.#swap(parent, child);
      child = parent;
    }
  }

  /** Takes the earliest one that is due. */
  pop(now: InstantUs): number | undefined {
    if (this.nextAt > now) return undefined;
    const number = this.#numbers[0] as number;
    const lastAt = this.#instants.pop() as number;
    const lastNumber = this.#numbers.pop() as number;
    if (this.#instants.length > 0) {
      this.#instants[0] = lastAt;
      this.#numbers[0] = lastNumber;
      this.#sink();
    }
    return number;
  }

  #sink(): void {
    let parent = 0;
    for (;;) {
      const left = 2 * parent + 1;
      if (left >= this.#instants.length) return;
      const right = left + 1;
      const rightAt = this.#instants[right] ?? Number.POSITIVE_INFINITY;
      const least = rightAt < (this.#instants[left] as number) ? right : left;
      if ((this.#instants[parent] as number) <= (this.#instants[least] as number)) return;
      this.#swap(parent, least);
      parent = least;
    }
  }

  #swap(a: number, b: number): void {
    const at = this.#instants[a] as number;
    this.#instants[a] = this.#instants[b] as number;
    this.#instants[b] = at;
    const number = this.#numbers[a] as number;
    this.#numbers[a] = this.#numbers[b] as number;
    this.#numbers[b] = number;
  }
}
