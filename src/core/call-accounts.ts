/** The accounts of keys that the store decides, and the checks that wait for calls, by row. */
import type { HeldCheck } from "./held-checks.ts";
import { LeaseAccount } from "./lease-account.ts";
import { TakeAccount } from "./take-account.ts";
import type { InstantUs, Tokens } from "./units.ts";

/** Checks that may wait for calls. */
const WAITING_MAX = 1_000;

export interface WaitingCheck {
  readonly held: HeldCheck;
  readonly cost: Tokens;
}

export class CallAccounts {
  readonly #leases = new Map<number, LeaseAccount>();
  readonly #takes = new Map<number, TakeAccount>();
  readonly #waiting = new Map<number, WaitingCheck[]>();
  #waitingCount = 0;

  get isFull(): boolean {
    return this.#waitingCount >= WAITING_MAX;
  }

  /** Rows with leases. */
  get leased(): Iterable<number> {
    return this.#leases.keys();
  }

  /** Rows with accounts of takes. */
  get taking(): Iterable<number> {
    return this.#takes.keys();
  }

  lease(slot: number, now: InstantUs): LeaseAccount {
    let account = this.#leases.get(slot);
    if (account === undefined) {
      account = new LeaseAccount(now);
      this.#leases.set(slot, account);
    }
    return account;
  }

  leaseIfAny(slot: number): LeaseAccount | undefined {
    return this.#leases.get(slot);
  }

  dropLease(slot: number): void {
    this.#leases.delete(slot);
  }

  takeIfAny(slot: number): TakeAccount | undefined {
    return this.#takes.get(slot);
  }

  take(slot: number): TakeAccount {
    let account = this.#takes.get(slot);
    if (account === undefined) {
      account = new TakeAccount();
      this.#takes.set(slot, account);
    }
    return account;
  }

  isWaitedFor(slot: number): boolean {
    return this.#waiting.has(slot);
  }

  addWaiting(slot: number, ...checks: readonly WaitingCheck[]): void {
    if (checks.length === 0) return;
    const queue = this.#waiting.get(slot);
    this.#waitingCount += checks.length;
    if (queue === undefined) this.#waiting.set(slot, [...checks]);
    else queue.push(...checks);
  }

  /** Checks that wait for the row and are not answered yet, oldest first. */
  waiting(slot: number): WaitingCheck[] {
    return (this.#waiting.get(slot) ?? []).filter(({ held }) => !held.isDone);
  }

  takeWaiting(slot: number): WaitingCheck[] {
    const waiting = this.waiting(slot);
    this.#waitingCount -= this.#waiting.get(slot)?.length ?? 0;
    this.#waiting.delete(slot);
    return waiting;
  }

  /** The row is gone or another mode's; what it held lapses with its slots. */
  forget(slot: number): void {
    this.#leases.delete(slot);
    this.#takes.delete(slot);
    this.takeWaiting(slot);
  }
}
