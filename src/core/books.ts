/** The configured limits with their live keys. */
import type { Book } from "./bucket-table.ts";
import { invariant } from "./invariant.ts";
import type { Limit } from "./limit.ts";
import { Tally } from "./tally.ts";

export class Books {
  #byName = new Map<string, Book>();
  #assumedPods = 1;

  /** Pods to assume before the first count: the most that any limit's fallback assumes. */
  get assumedPods(): number {
    return this.#assumedPods;
  }

  has(limit: Limit): boolean {
    return this.#byName.has(limit.name);
  }

  /** By name, so that a check that began before a reload finds the limit that holds now. */
  of(limit: Limit): Book {
    const book = this.#byName.get(limit.name);
    invariant(book !== undefined, `limit ${limit.name} is not configured`);
    return book;
  }

  all(): Iterable<Book> {
    return this.#byName.values();
  }

  /** Puts other limits in force; tallies go on. @returns The books of limits that are gone. */
  replace(limits: readonly Limit[]): Book[] {
    const before = this.#byName;
    this.#byName = new Map();
    this.#assumedPods = 1;
    for (const limit of limits) {
      const book = before.get(limit.name) ?? { limit, slots: new Map(), tally: new Tally() };
      book.limit = limit;
      this.#byName.set(limit.name, book);
      this.#assumedPods = Math.max(this.#assumedPods, limit.fallback.maxPods);
    }
    return [...before.values()].filter((book) => !this.has(book.limit));
  }
}
