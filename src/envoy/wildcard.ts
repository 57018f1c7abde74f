/** Patterns of values, in which each `*` stands for any text, also for none. */

export class Wildcard {
  readonly #head: string;
  readonly #middle: readonly string[];
  readonly #tail: string;

  /** @param pattern - With at least one `*`. */
  constructor(pattern: string) {
    const parts = pattern.split("*");
    this.#head = parts[0] ?? "";
    this.#tail = parts.at(-1) ?? "";
    this.#middle = parts.slice(1, -1).filter((part) => part !== "");
  }

  /** Linear in the value for each part: the first place for a part is never worse than a later. */
  matches(value: string): boolean {
    const head = this.#head;
    const end = value.length - this.#tail.length;
    if (end < head.length || !value.startsWith(head) || !value.endsWith(this.#tail)) return false;
    let at = head.length;
    for (const part of this.#middle) {
      const found = value.indexOf(part, at);
      if (found < 0 || found + part.length > end) return false;
      at = found + part.length;
    }
    return true;
  }
}
