/**
 * Where checks are decided: takes from all accounts of a check or from none, holds the check when
 * the store could change the answer, and words the decisions.
 */
import type { Accounts } from "./accounts.ts";
import type { Books } from "./books.ts";
import { CHECKS_MAX, type Check, type Decision, undecided } from "./decision.ts";
import type { Effect, Held } from "./effect.ts";
import type { Eviction } from "./eviction.ts";
import type { HeldCheck, HeldChecks } from "./held-checks.ts";
import { isLargeCost } from "./mode-choice.ts";
import type { RowSchedule } from "./row-schedule.ts";
import { Seat } from "./seat.ts";
import type { StoreDecided } from "./store-decided.ts";
import { type DurationUs, type InstantUs, type Tokens, US_PER_SECOND } from "./units.ts";
import { Verdict, type Verdicts } from "./verdicts.ts";

/** A large cost is told to the fleet with the heartbeats of so long; the fleet remembers it. */
const LARGE_COST_US: DurationUs = 60 * US_PER_SECOND;

export interface DecisionDeskParts {
  readonly sole: boolean;
  readonly decisionTimeoutUs: DurationUs;
  readonly books: Books;
  readonly accounts: Accounts;
  readonly eviction: Eviction;
  readonly verdicts: Verdicts;
  readonly held: HeldChecks;
  readonly schedule: RowSchedule;
  readonly storeDecided: StoreDecided;
}

export class DecisionDesk {
  readonly #parts: DecisionDeskParts;
  readonly #seats: readonly Seat[] = Array.from({ length: CHECKS_MAX }, () => new Seat());
  readonly #verdicts: readonly Verdict[] = Array.from({ length: CHECKS_MAX }, () => new Verdict());
  /** The first verdicts, by how many there are of them. */
  readonly #concluded: readonly (readonly Verdict[])[] = Array.from(
    { length: CHECKS_MAX + 1 },
    (_, count) => this.#verdicts.slice(0, count),
  );
  /** By limit; there are no more of them than limits. */
  readonly #largeCostAt = new Map<string, InstantUs>();
  #answers: Effect[] = [];

  constructor(parts: DecisionDeskParts) {
    this.#parts = parts;
  }

  /** Names of limits in `auto` for which a large cost was seen within `LARGE_COST_US`. */
  largeCosts(now: InstantUs): string[] {
    const names: string[] = [];
    for (const [name, seenAt] of this.#largeCostAt) {
      if (now - seenAt < LARGE_COST_US) names.push(name);
    }
    return names;
  }

  get hasAnswers(): boolean {
    return this.#answers.length > 0;
  }

  /** The answers to held checks since the last call. */
  takeAnswers(): Effect[] {
    const answers = this.#answers;
    this.#answers = [];
    return answers;
  }

  /**
   * Decides all checks or none; see `Decider.decide`.
   *
   * @param checks - 1 to `CHECKS_MAX`.
   * @returns Decisions that are written over by the next call.
   */
  decide(now: InstantUs, checks: readonly Check[]): readonly Decision[] | Held {
    const isPassed = this.#attempt(now, checks, undefined);
    if (this.#mayHold(now, checks.length)) {
      if (isPassed) this.#undo(now, checks.length);
      return this.#hold(now, checks);
    }
    if (!isPassed) this.#answerPeeks(now, checks.length);
    return this.#conclude(now, checks.length, isPassed, undefined, false);
  }

  /** Another limit denies for certain: peeks that would have asked say what the pod knows. */
  #answerPeeks(now: InstantUs, count: number): void {
    for (let i = 0; i < count; i += 1) {
      const seat = this.#seats[i] as Seat;
      if (seat.passed || seat.check.cost > 0) continue;
      seat.wasAsked = true;
      seat.passed = this.#parts.accounts.take(seat, now);
    }
  }

  /**
   * Debits or refunds unconditionally; see `Decider.report`.
   *
   * @param check - `cost` may be negative here.
   */
  report(now: InstantUs, check: Check): Decision {
    // A charge for a check that was held may come after a reload that removed its limit.
    if (!this.#parts.books.has(check.limit)) return undecided(check.limit);
    const seat = this.#seats[0] as Seat;
    const book = this.#parts.books.of(check.limit);
    // A refund needs a row as much as a debit does, so the seat is taken as for a cost of one.
    this.#parts.accounts.sit(seat, book, { ...check, cost: 1 }, now);
    seat.check = check;
    this.#parts.accounts.charge(seat, now);
    seat.check = { ...check, cost: 0 };
    seat.passed = true;
    const verdict = new Verdict();
    this.#parts.verdicts.write(seat, now, false, verdict);
    return verdict;
  }

  /** Takes from all accounts or from none. */
  #attempt(now: InstantUs, checks: readonly Check[], held: HeldCheck | undefined): boolean {
    let isPassed = true;
    this.#parts.eviction.keepNone();
    for (let i = 0; i < checks.length; i += 1) {
      const seat = this.#seats[i] as Seat;
      const check = checks[i] as Check;
      this.#parts.accounts.sit(seat, this.#parts.books.of(check.limit), check, now);
      if (checks.length > 1) this.#parts.eviction.keep(seat.slot);
      if (held !== undefined) this.#recall(seat, held);
      seat.passed = this.#parts.accounts.take(seat, now);
      if (!seat.passed && !seat.limit.shadow) isPassed = false;
    }
    if (isPassed) return true;
    this.#undo(now, checks.length);
    return false;
  }

  #undo(now: InstantUs, count: number): void {
    // Backwards, because a check may name the same key twice.
    for (let i = count - 1; i >= 0; i -= 1) {
      const seat = this.#seats[i] as Seat;
      if (seat.passed) this.#parts.accounts.undo(seat, now);
    }
  }

  /** Brings back what the store said about this seat while the check was held. */
  #recall(seat: Seat, held: HeldCheck): void {
    seat.wasAsked = held.asked.has(seat.slot);
    seat.grant = held.grants.get(seat.slot);
    if (held.waitsFor.has(seat.slot)) seat.trouble = "timeout";
  }

  /**
   * A check is held only if the store may change every answer that stands against it, and at least
   * one. A shadow limit stands against nothing, but one that only the store can decide must ask.
   */
  #mayHold(now: InstantUs, count: number): boolean {
    if (this.#parts.sole || this.#parts.held.isFull) return false;
    let isAsking = false;
    for (let i = 0; i < count; i += 1) {
      const seat = this.#seats[i] as Seat;
      if (seat.passed) continue;
      if (this.#parts.accounts.isWorthAsking(seat, now)) isAsking = true;
      else if (!seat.limit.shadow) return false;
    }
    return isAsking;
  }

  #hold(now: InstantUs, checks: readonly Check[]): Held {
    const costs = new Map<number, Tokens>();
    const asking: Seat[] = [];
    for (let i = 0; i < checks.length; i += 1) {
      const seat = this.#seats[i] as Seat;
      if (seat.passed || !this.#parts.accounts.isWorthAsking(seat, now)) continue;
      if (!costs.has(seat.slot)) asking.push(seat);
      costs.set(seat.slot, (costs.get(seat.slot) ?? 0) + seat.check.cost);
    }
    let waitUs = this.#parts.decisionTimeoutUs;
    for (const { slot } of asking) {
      waitUs = Math.min(waitUs, this.#parts.schedule.laneOf(slot).waitUs(now, waitUs));
    }
    const held = this.#parts.held.hold([...checks], costs.keys(), now + waitUs);
    for (const seat of asking) {
      this.#parts.accounts.hold(held, seat, costs.get(seat.slot) as Tokens, now);
    }
    return { held: held.id };
  }

  /** Decides a check that was held, by a reply or because its time is up. */
  settle(now: InstantUs, held: HeldCheck, byStore: boolean): void {
    const checks = held.checks.filter((check) => this.#parts.books.has(check.limit));
    const isPassed = this.#attempt(now, checks, held);
    if (!isPassed) {
      for (const [slot, grant] of held.grants) this.#parts.storeDecided.refuse(slot, grant, now);
    }
    const decisions = this.#conclude(now, checks.length, isPassed, held.asked, byStore);
    // A limit that a reload removed while the check was held stands against nothing any more.
    const all = held.checks.map((check) => {
      const decision = decisions[checks.indexOf(check)];
      return decision === undefined ? undecided(check.limit) : { ...decision };
    });
    this.#answers.push({ kind: "answer", held: held.id, decisions: all });
  }

  /** Notes the outcome with every account, counts it, and words the answers. */
  #conclude(
    now: InstantUs,
    count: number,
    isPassed: boolean,
    asked: ReadonlySet<number> | undefined,
    byStore: boolean,
  ): readonly Decision[] {
    for (let i = 0; i < count; i += 1) {
      const seat = this.#seats[i] as Seat;
      const isNew = asked === undefined || !asked.has(seat.slot);
      if (!seat.passed) this.#parts.accounts.noteDenied(seat, now, isNew);
      else if (isPassed) this.#parts.accounts.noteAdmitted(seat, now, isNew);
      const verdict = this.#verdicts[i] as Verdict;
      this.#parts.verdicts.write(seat, now, byStore, verdict);
      // What passed but was undone by another limit was neither admitted nor denied here.
      const isCounted = seat.check.cost > 0 && (isPassed || !seat.passed);
      if (seat.limit.isAuto && isLargeCost(seat.limit, seat.check.cost)) {
        this.#largeCostAt.set(seat.limit.name, now);
      }
      if (isCounted) seat.book.tally.count(verdict, seat.check.cost);
    }
    return this.#concluded[count] as readonly Verdict[];
  }
}
