/**
 * Checks that wait for the store: a pod that cannot cover a cost, but believes that the store can,
 * holds the check until a reply to something that was sent after the check came, and no longer than
 * the decision timeout; shorter where the store is late already (`Lane.waitUs`).
 */
import type { Check } from "./decision.ts";
import type { LeaseSpend } from "./lease-purse.ts";
import type { Taken } from "./take-account.ts";
import type { InstantUs, Tokens } from "./units.ts";
import { WakeHeap } from "./wake-heap.ts";

/** Most checks held at once; beyond it a check is decided by what the pod has. */
const HELD_MAX = 1_000;

/** Tokens that the store let through for one check: a take, or a spend of a fresh lease. */
export type Grant =
  | { readonly kind: "take"; readonly cost: Tokens; readonly taken: Taken }
  | { readonly kind: "lease"; readonly spend: LeaseSpend };

export interface HeldCheck {
  readonly id: number;
  readonly checks: readonly Check[];
  readonly deadline: InstantUs;
  /** Rows that were asked for; their demand is counted. */
  readonly asked: ReadonlySet<number>;
  /** Rows whose reply is still to come. */
  readonly waitsFor: Set<number>;
  /** Rows that let the check through in the store. */
  readonly grants: Map<number, Grant>;
  /** Answered; what comes for it now is too late. */
  isDone: boolean;
}

interface Waiting {
  readonly held: HeldCheck;
  readonly cost: Tokens;
  /** The row was cut into a batch since the check is held. */
  isCut: boolean;
}

export class HeldChecks {
  readonly #byId = new Map<number, HeldCheck>();
  /** Checks that wait for a reconcile of the row; those that wait for a call are queued there. */
  readonly #bySlot = new Map<number, Waiting[]>();
  /** Ids by deadline; those of checks that are answered stay until they are met. */
  readonly #deadlines = new WakeHeap();
  #lastId = 0;

  get isFull(): boolean {
    return this.#byId.size >= HELD_MAX;
  }

  get nextDeadline(): InstantUs {
    for (;;) {
      const id = this.#deadlines.first;
      if (id === undefined || this.#byId.has(id)) return this.#deadlines.nextAt;
      this.#deadlines.pop(Number.POSITIVE_INFINITY);
    }
  }

  /** @param slots - Every row that the check waits for. */
  hold(checks: readonly Check[], slots: Iterable<number>, deadline: InstantUs): HeldCheck {
    this.#lastId += 1;
    const asked = new Set(slots);
    const held: HeldCheck = {
      id: this.#lastId,
      checks,
      deadline,
      asked,
      waitsFor: new Set(asked),
      grants: new Map(),
      isDone: false,
    };
    this.#byId.set(held.id, held);
    this.#deadlines.push(deadline, held.id);
    return held;
  }

  /** The check waits for the next reconcile of the row. */
  awaitReconcile(held: HeldCheck, slot: number, cost: Tokens): void {
    const queue = this.#bySlot.get(slot);
    const waiting = { held, cost, isCut: false };
    if (queue === undefined) this.#bySlot.set(slot, [waiting]);
    else queue.push(waiting);
  }

  isWaitedFor(slot: number): boolean {
    return this.#bySlot.has(slot);
  }

  /** Sum of the costs that wait for a reconcile of the row. */
  costOf(slot: number): Tokens {
    return (this.#bySlot.get(slot) ?? []).reduce((sum, { cost }) => sum + cost, 0);
  }

  noteCut(slot: number): void {
    for (const waiting of this.#bySlot.get(slot) ?? []) waiting.isCut = true;
  }

  /**
   * The row was told about by a reconcile. @returns The checks that now have all they waited for,
   * oldest first, no longer held.
   */
  heard(slot: number): HeldCheck[] {
    const cut = (this.#bySlot.get(slot) ?? []).filter((waiting) => waiting.isCut);
    this.#forget(slot, (waiting) => waiting.isCut);
    return cut.filter(({ held }) => this.arrived(held, slot)).map(({ held }) => held);
  }

  /** One of the rows was heard. @returns Whether the check has all it waited for. */
  arrived(held: HeldCheck, slot: number): boolean {
    held.waitsFor.delete(slot);
    if (held.isDone || held.waitsFor.size > 0) return false;
    held.isDone = true;
    this.#byId.delete(held.id);
    return true;
  }

  /** Checks whose time is up, oldest first, no longer held. */
  expired(now: InstantUs): HeldCheck[] {
    const late: HeldCheck[] = [];
    for (let id = this.#deadlines.pop(now); id !== undefined; id = this.#deadlines.pop(now)) {
      const held = this.#byId.get(id);
      if (held !== undefined) late.push(held);
    }
    late.sort((a, b) => a.id - b.id);
    for (const held of late) {
      held.isDone = true;
      this.#byId.delete(held.id);
      for (const slot of held.waitsFor) {
        this.#forget(slot, (waiting) => waiting.held === held);
      }
    }
    return late;
  }

  /**
   * Rows were removed, and their slots will be other keys'. The checks that waited for them stay
   * held until their other rows were heard or their time is up.
   */
  dropRows(isLive: (slot: number) => boolean): void {
    for (const slot of this.#bySlot.keys()) if (!isLive(slot)) this.#bySlot.delete(slot);
    for (const { waitsFor, grants } of this.#byId.values()) {
      for (const slot of waitsFor) if (!isLive(slot)) waitsFor.delete(slot);
      for (const slot of grants.keys()) if (!isLive(slot)) grants.delete(slot);
    }
  }

  #forget(slot: number, isDone: (waiting: Waiting) => boolean): void {
    const queue = this.#bySlot.get(slot);
    if (queue === undefined) return;
    const rest = queue.filter((waiting) => !isDone(waiting));
    if (rest.length === 0) this.#bySlot.delete(slot);
    else this.#bySlot.set(slot, rest);
  }
}
