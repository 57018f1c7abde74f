/** A first-in-first-out queue of slots whose ends cost the same however long it grows. */
export class SlotQueue {
  #slots: number[] = [];
  #head = 0;

  get length(): number {
    return this.#slots.length - this.#head;
  }

  push(slot: number): void {
    this.#slots.push(slot);
  }

  shift(): number | undefined {
    const slot = this.#slots[this.#head];
    if (slot === undefined) return undefined;
    this.#head += 1;
    // Moving what is left is paid for by at least as many shifts.
    if (this.#head >= this.#slots.length / 2) {
      this.#slots = this.#slots.slice(this.#head);
      this.#head = 0;
    }
    return slot;
  }
}
