/** The configured limits with their live keys. */
import type { Book } from "./bucket-table.ts";
import { invariant } from "./invariant.ts";
import type { Limit } from "./limit.ts";
import { inForce, type ModeChoice, type ModeTerms } from "./mode-choice.ts";
import { Tally } from "./tally.ts";

/** What the choice of modes goes by. */
export interface FleetModeTerms extends Omit<ModeTerms, "hasLargeCosts"> {
  /** Names of limits with large costs. */
  readonly largeCosts: readonly string[];
}

export class Books {
  #byName = new Map<string, Book>();
  #configured: readonly Limit[] = [];
  readonly #choices = new Map<string, ModeChoice>();
  #assumedPods = 1;
  #margin = 0;

  /** The largest margin of any limit that admits while isolated. */
  get margin(): number {
    return this.#margin;
  }

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

  /** How a limit is kept, and why. */
  choiceOf(limit: Limit): ModeChoice | undefined {
    return this.#choices.get(limit.name);
  }

  /**
   * Puts limits in force as the size of the fleet wants them kept; tallies go on.
   *
   * @param configured - As configured; when absent, those of the last call.
   * @returns The books of limits that are gone.
   */
  resolve(terms: FleetModeTerms, configured: readonly Limit[] = this.#configured): Book[] {
    this.#configured = configured;
    this.#choices.clear();
    return this.#replace(
      configured.map((limit) => {
        const hasLargeCosts = terms.largeCosts.includes(limit.name);
        const resolved = inForce(limit, { ...terms, hasLargeCosts });
        this.#choices.set(limit.name, resolved.choice);
        return resolved.limit;
      }),
    );
  }

  #replace(limits: readonly Limit[]): Book[] {
    const before = this.#byName;
    this.#byName = new Map();
    this.#assumedPods = 1;
    this.#margin = 0;
    for (const limit of limits) {
      const book = before.get(limit.name) ?? { limit, slots: new Map(), tally: new Tally() };
      book.limit = limit;
      this.#byName.set(limit.name, book);
      if (limit.fallback.policy === "local") {
        this.#margin = Math.max(this.#margin, limit.fallback.margin);
      }
      this.#assumedPods = Math.max(this.#assumedPods, limit.fallback.maxPods);
    }
    return [...before.values()].filter((book) => !this.has(book.limit));
  }
}
