/**
 * What many rows have in common: a book and the limit in force. A row keeps a number of four bytes
 * in place of two references.
 */
import type { Book } from "./bucket-table.ts";
import type { Limit } from "./limit.ts";

interface Term {
  readonly book: Book;
  readonly limit: Limit;
  rows: number;
}

/** The number that stands for no term. */
export const NO_TERM = 0;

/** There are at most as many terms as rows. */
export class Terms {
  readonly #terms: (Term | undefined)[] = [undefined];
  readonly #free: number[] = [];
  readonly #byLimit = new Map<Limit, number>();

  bookOf(id: number): Book {
    return (this.#terms[id] as Term).book;
  }

  limitOf(id: number): Limit {
    return (this.#terms[id] as Term).limit;
  }

  /** One more row has this book and limit. @returns Their number. */
  take(book: Book, limit: Limit): number {
    const known = this.#byLimit.get(limit);
    if (known !== undefined && this.#terms[known]?.book === book) {
      (this.#terms[known] as Term).rows += 1;
      return known;
    }
    const id = this.#free.pop() ?? this.#terms.length;
    this.#terms[id] = { book, limit, rows: 1 };
    this.#byLimit.set(limit, id);
    return id;
  }

  /** A row no longer has it. */
  drop(id: number): void {
    const term = this.#terms[id] as Term;
    term.rows -= 1;
    if (term.rows > 0) return;
    this.#terms[id] = undefined;
    this.#free.push(id);
    if (this.#byLimit.get(term.limit) === id) this.#byLimit.delete(term.limit);
  }
}
