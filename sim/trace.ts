/** A digest of a run: two 32-bit FNV-style lanes over everything that happened, in order. */
export class Trace {
  #low = 0x811c9dc5;
  #high = 0x01000193;

  /** Adds whole numbers and doubles alike; the order matters. */
  add(...facts: number[]): void {
    for (const fact of facts) {
      const whole = Math.floor(fact);
      this.#word(whole | 0);
      this.#word(Math.floor(whole / 0x100000000) | 0);
    }
  }

  #word(word: number): void {
    this.#low = Math.imul(this.#low ^ word, 0x01000193);
    this.#low ^= this.#low >>> 15;
    this.#high = Math.imul(this.#high ^ this.#low ^ (word >>> 7), 0x85ebca6b);
    this.#high ^= this.#high >>> 13;
  }

  /** 16 hexadecimal digits. */
  digest(): string {
    const hex = (word: number): string => (word >>> 0).toString(16).padStart(8, "0");
    return hex(this.#low) + hex(this.#high);
  }
}
