/**
 * Checks that wait for the store: a pod that cannot cover a cost, but believes that the store can,
 * holds the check until a reply to a batch that was cut after the check came, and no longer than the
 * decision timeout.
 */
import type { Check } from "./decision.ts";
import type { InstantUs, Tokens } from "./units.ts";

/** Most checks held at once; beyond it a check is decided by what the pod has. */
const HELD_MAX = 1_000;

export interface HeldCheck {
  readonly id: number;
  readonly checks: readonly Check[];
  readonly deadline: InstantUs;
  /** Rows that were asked for; their demand is counted. */
  readonly asked: ReadonlySet<number>;
  /** Rows whose reply is still to come. */
  readonly waitsFor: Set<number>;
}

interface Waiting {
  readonly held: HeldCheck;
  readonly cost: Tokens;
  /** The row was cut into a batch since the check is held. */
  isCut: boolean;
}

export class HeldChecks {
  readonly #byId = new Map<number, HeldCheck>();
  readonly #bySlot = new Map<number, Waiting[]>();
  #lastId = 0;

  get isFull(): boolean {
    return this.#byId.size >= HELD_MAX;
  }

  /** Deadlines are in order of arrival, so the first is the earliest. */
  get nextDeadline(): InstantUs {
    for (const held of this.#byId.values()) return held.deadline;
    return Number.POSITIVE_INFINITY;
  }

  hold(
    checks: readonly Check[],
    slots: ReadonlyMap<number, Tokens>,
    deadline: InstantUs,
  ): HeldCheck {
    this.#lastId += 1;
    const asked = new Set(slots.keys());
    const held = { id: this.#lastId, checks, deadline, asked, waitsFor: new Set(asked) };
    this.#byId.set(held.id, held);
    for (const [slot, cost] of slots) {
      const queue = this.#bySlot.get(slot);
      const waiting = { held, cost, isCut: false };
      if (queue === undefined) this.#bySlot.set(slot, [waiting]);
      else queue.push(waiting);
    }
    return held;
  }

  isWaitedFor(slot: number): boolean {
    return this.#bySlot.has(slot);
  }

  /** Sum of the costs that wait for the row. */
  costOf(slot: number): Tokens {
    return (this.#bySlot.get(slot) ?? []).reduce((sum, { cost }) => sum + cost, 0);
  }

  noteCut(slot: number): void {
    for (const waiting of this.#bySlot.get(slot) ?? []) waiting.isCut = true;
  }

  /**
   * The row was told about. @returns The checks that now have all they waited for, oldest first,
   * no longer held.
   */
  heard(slot: number): HeldCheck[] {
    const ready: HeldCheck[] = [];
    for (const { held, isCut } of this.#bySlot.get(slot) ?? []) {
      if (!isCut) continue;
      held.waitsFor.delete(slot);
      if (held.waitsFor.size === 0) ready.push(held);
    }
    this.#forget(slot, (waiting) => waiting.isCut);
    for (const held of ready) this.#byId.delete(held.id);
    return ready;
  }

  /** Checks whose time is up, oldest first, no longer held. */
  expired(now: InstantUs): HeldCheck[] {
    const late: HeldCheck[] = [];
    for (const held of this.#byId.values()) {
      if (held.deadline > now) break;
      late.push(held);
    }
    for (const held of late) {
      this.#byId.delete(held.id);
      for (const slot of held.waitsFor) {
        this.#forget(slot, (waiting) => waiting.held === held);
      }
    }
    return late;
  }

  #forget(slot: number, isDone: (waiting: Waiting) => boolean): void {
    const rest = (this.#bySlot.get(slot) ?? []).filter((waiting) => !isDone(waiting));
    if (rest.length === 0) this.#bySlot.delete(slot);
    else this.#bySlot.set(slot, rest);
  }
}
