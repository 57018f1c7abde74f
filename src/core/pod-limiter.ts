/**
 * The engine of one pod: decides checks from its own buckets and says what to tell the store.
 *
 * It is synchronous and passive. Every call takes the instant, `tick` takes chance as well, and
 * what should happen outside leaves as values ("exchange this batch"). An adapter performs them: the
 * daemon with timers and Redis, the simulator with its virtual clock and network.
 *
 * The adapter's whole duty:
 *   1. call `decide` for checks, `replied`/`failed` for every exchange that ended, `membershipChanged`
 *      when the fleet's size was told;
 *   2. after any call, see that `tick` runs no later than `wakeAt` (at once when it is not later
 *      than now), and perform the effects that it returns.
 */
import { Accounts } from "./accounts.ts";
import { Books } from "./books.ts";
import { BucketTable, EXACT_ROW } from "./bucket-table.ts";
import { type Check, type Decision, undecided } from "./decision.ts";
import type { Effect, ExchangeTrouble, Held, MembershipView } from "./effect.ts";
import { type BatchReply, REPLY_FIELDS } from "./exchange.ts";
import { FallbackBuckets } from "./fallback-buckets.ts";
import { FleetSize } from "./fleet-size.ts";
import { type HeldCheck, HeldChecks } from "./held-checks.ts";
import { Housekeeping } from "./housekeeping.ts";
import { HybridBuckets } from "./hybrid.ts";
import { HYBRID_ROW } from "./hybrid-row.ts";
import { invariant } from "./invariant.ts";
import { Lane } from "./lane.ts";
import { type Limit, limitForKey } from "./limit.ts";
import { RowSchedule } from "./row-schedule.ts";
import { Seat } from "./seat.ts";
import { StoreHealth } from "./store-health.ts";
import { StoreLink } from "./store-link.ts";
import type { Figures, ReconcileCounts } from "./tally.ts";
import type { DurationUs, InstantUs, Tokens } from "./units.ts";
import { Verdicts } from "./verdicts.ts";

export interface PodLimiterOptions {
  readonly limits: readonly Limit[];
  /** No store: this pod is the whole fleet and keeps ideal buckets. */
  readonly sole: boolean;
  /** Batch sequences of the coordinator. */
  readonly lanes: number;
  /** A batch unanswered for longer is sent again; the engine raises it to three mean round trips. */
  readonly commandTimeoutUs: DurationUs;
  /** No check is held for longer. */
  readonly decisionTimeoutUs: DurationUs;
  /** Most keys tracked at once; beyond it the longest idle are evicted. */
  readonly keysMax: number;
  /** Tells this pod from others where phases must differ; any string. */
  readonly podId: string;
}

/** A check may name so many limits; seats for them are made once. */
export const CHECKS_MAX = 16;

export class PodLimiter {
  readonly #options: PodLimiterOptions;
  readonly #table: BucketTable;
  readonly #books = new Books();
  readonly #fleet = new FleetSize();
  readonly #held = new HeldChecks();
  readonly #lanes: readonly Lane[];
  readonly #health: StoreHealth;
  readonly #link: StoreLink;
  readonly #accounts: Accounts;
  readonly #verdicts: Verdicts;
  readonly #housekeeping: Housekeeping;
  readonly #seats: readonly Seat[] = Array.from({ length: CHECKS_MAX }, () => new Seat());
  readonly #reconciled: ReconcileCounts = {
    ok: 0,
    timeout: 0,
    unreachable: 0,
    refused: 0,
    malformed: 0,
    keys: 0,
  };
  #answers: Effect[] = [];

  constructor(options: PodLimiterOptions, now: InstantUs) {
    this.#options = options;
    const { sole, podId, commandTimeoutUs } = options;
    const table = new BucketTable(sole ? EXACT_ROW : HYBRID_ROW, options.keysMax);
    const hybrid = new HybridBuckets(table);
    const fallback = new FallbackBuckets(table);
    const lanes = Array.from({ length: options.lanes }, (_, index) => new Lane(index));
    const fleet = this.#fleet;
    const held = this.#held;
    const health = new StoreHealth(lanes, fleet, commandTimeoutUs);
    const schedule = new RowSchedule(table, hybrid, held, lanes);
    const parts = { table, hybrid, fallback, held, lanes, schedule, health, commandTimeoutUs };
    const link = new StoreLink(parts);
    this.#table = table;
    this.#lanes = lanes;
    this.#health = health;
    this.#link = link;
    this.#verdicts = new Verdicts({ ...parts, podId, fleet });
    this.#accounts = new Accounts({ ...parts, sole, podId, fleet, link, verdicts: this.#verdicts });
    this.#housekeeping = new Housekeeping({ ...parts, sole, fleet }, now);
    this.configChanged(now, options.limits);
  }

  /** When `tick` has something to do; not later than now for at once, Infinity for never. */
  get wakeAt(): InstantUs {
    if (this.#answers.length > 0) return Number.NEGATIVE_INFINITY;
    return Math.min(this.#housekeeping.sweepAt, this.#held.nextDeadline, this.#link.wakeAt);
  }

  /** Decides all checks or none; see `Decider.decide`. @param checks - 1 to `CHECKS_MAX`. */
  decide(now: InstantUs, checks: readonly Check[]): readonly Decision[] | Held {
    const isPassed = this.#attempt(now, checks);
    if (!isPassed && this.#mayHold(now, checks.length)) return this.#hold(now, checks);
    return this.#conclude(now, checks.length, isPassed, undefined, false);
  }

  /**
   * Debits or refunds unconditionally; see `Decider.report`.
   *
   * @param check - `cost` may be negative here.
   */
  report(now: InstantUs, check: Check): Decision {
    const seat = this.#seats[0] as Seat;
    const book = this.#books.of(check.limit);
    // A refund needs a row as much as a debit does, so the seat is taken as for a cost of one.
    this.#accounts.sit(seat, book, { ...check, cost: 1 }, now);
    seat.check = check;
    this.#accounts.charge(seat, now);
    seat.check = { ...check, cost: 0 };
    seat.passed = true;
    return this.#verdicts.of(seat, now, false);
  }

  /** @param draw - A fresh number uniform in [0, 1) at each call. */
  tick(now: InstantUs, draw: () => number): Effect[] {
    for (const held of this.#held.expired(now)) this.#settle(now, held, false);
    const pods = this.#fleet.pods(this.#books.assumedPods);
    const effects = this.#answers;
    this.#answers = [];
    if (!this.#options.sole) {
      for (const batch of this.#link.tick(now, pods, draw))
        effects.push({ kind: "exchange", batch });
    }
    if (now >= this.#housekeeping.sweepAt) this.#housekeeping.sweep(now);
    return effects;
  }

  /** A reply to the batch `seq` of `lane`. Late, repeated and foreign replies are recognised. */
  replied(now: InstantUs, lane: number, seq: number, reply: BatchReply): void {
    this.#reconciled.ok += 1;
    this.#reconciled.keys += reply.entries.length / REPLY_FIELDS;
    for (const held of this.#link.replied(now, this.#lane(lane), seq, reply)) {
      this.#settle(now, held, true);
    }
  }

  /** An exchange of the batch `seq` of `lane` failed; it will be tried again. */
  failed(now: InstantUs, lane: number, seq: number, trouble: ExchangeTrouble): void {
    this.#reconciled[trouble] += 1;
    this.#link.failed(now, this.#lane(lane), seq);
  }

  /** The fleet was counted (heartbeat answered, static configuration, ...). */
  membershipChanged(now: InstantUs, view: MembershipView): void {
    this.#fleet.counted(now, view.pods);
    for (const lane of this.#lanes) {
      // A lane that gave up on a batch and has nothing to ask learns here that the store is back.
      if (lane.phase === "free" && !lane.hasDue) lane.free();
    }
  }

  /** A heartbeat failed: the store is away as far as idle lanes can tell. */
  membershipFailed(now: InstantUs): void {
    this.#fleet.failed(now);
  }

  /** Puts other limits in force; see docs/design.md for what happens to live buckets. */
  configChanged(now: InstantUs, limits: readonly Limit[]): void {
    const removed = this.#books.replace(limits);
    for (const book of this.#books.all()) {
      for (const [key, slot] of book.slots) {
        this.#housekeeping.relimit(slot, limitForKey(book.limit, key), now);
      }
    }
    for (const book of removed) {
      for (const slot of [...book.slots.values()]) {
        if (!this.#options.sole) this.#link.orphan(slot, now);
        this.#table.remove(slot);
      }
    }
  }

  /**
   * Begins a graceful leave: everything unreported becomes due, stock is given back and no more is
   * asked for. The caller ticks until `settled`, then leaves the membership.
   */
  beginLeave(_now: InstantUs): void {
    if (!this.#options.sole) this.#link.beginLeave();
  }

  /** Nothing is unreported and no batch is unanswered. */
  get settled(): boolean {
    return this.#options.sole || this.#link.isSettled;
  }

  figures(now: InstantUs): Figures {
    const { sole } = this.#options;
    return {
      limits: [...this.#books.all()].map((book) => this.#housekeeping.figuresOf(book)),
      trackedKeys: this.#table.size,
      evictedKeys: this.#table.evicted,
      pods: sole ? 1 : this.#fleet.pods(this.#books.assumedPods),
      fallbackActive: !sole && this.#health.isIsolated(now),
      storeUp: sole || this.#health.isUp(now),
      lostTokens: this.#link.lost,
      reconciled: { ...this.#reconciled },
    };
  }

  /** Takes from all accounts or from none. */
  #attempt(now: InstantUs, checks: readonly Check[]): boolean {
    let isPassed = true;
    for (let i = 0; i < checks.length; i += 1) {
      const seat = this.#seats[i] as Seat;
      const check = checks[i] as Check;
      this.#accounts.sit(seat, this.#books.of(check.limit), check, now);
      seat.passed = this.#accounts.take(seat);
      if (!seat.passed && !seat.limit.shadow) isPassed = false;
    }
    if (isPassed) return true;
    // Backwards, because a check may name the same key twice.
    for (let i = checks.length - 1; i >= 0; i -= 1) this.#accounts.undo(this.#seats[i] as Seat);
    return false;
  }

  /** A check is held only if the store may change every answer that stands against it. */
  #mayHold(now: InstantUs, count: number): boolean {
    if (this.#options.sole || this.#held.isFull) return false;
    for (let i = 0; i < count; i += 1) {
      const seat = this.#seats[i] as Seat;
      if (seat.passed || seat.limit.shadow) continue;
      if (!this.#accounts.isWorthAsking(seat, now)) return false;
    }
    return true;
  }

  #hold(now: InstantUs, checks: readonly Check[]): Held {
    const slots = new Map<number, Tokens>();
    for (let i = 0; i < checks.length; i += 1) {
      const seat = this.#seats[i] as Seat;
      if (seat.passed || seat.limit.shadow) continue;
      slots.set(seat.slot, (slots.get(seat.slot) ?? 0) + seat.check.cost);
    }
    const held = this.#held.hold([...checks], slots, now + this.#options.decisionTimeoutUs);
    for (let i = 0; i < checks.length; i += 1) {
      const seat = this.#seats[i] as Seat;
      if (!seat.passed && !seat.limit.shadow) this.#accounts.noteHeld(seat);
    }
    return { held: held.id };
  }

  /** Decides a check that was held, by a reply or because its time is up. */
  #settle(now: InstantUs, held: HeldCheck, byStore: boolean): void {
    const checks = held.checks.filter((check) => this.#books.has(check.limit));
    const isPassed = this.#attempt(now, checks);
    const decisions = this.#conclude(now, checks.length, isPassed, held.asked, byStore);
    // A limit that a reload removed while the check was held stands against nothing any more.
    const all = held.checks.map(
      (check) => decisions[checks.indexOf(check)] ?? undecided(check.limit),
    );
    this.#answers.push({ kind: "answer", held: held.id, decisions: all });
  }

  /** Notes the outcome with every account, counts it, and words the answers. */
  #conclude(
    now: InstantUs,
    count: number,
    isPassed: boolean,
    asked: ReadonlySet<number> | undefined,
    byStore: boolean,
  ): Decision[] {
    const decisions: Decision[] = [];
    for (let i = 0; i < count; i += 1) {
      const seat = this.#seats[i] as Seat;
      const isNew = asked === undefined || !asked.has(seat.slot);
      if (!seat.passed) this.#accounts.noteDenied(seat, now, isNew);
      else if (isPassed) this.#accounts.noteAdmitted(seat, now, isNew);
      const decision = this.#verdicts.of(seat, now, byStore);
      // What passed but was undone by another limit was neither admitted nor denied here.
      const isCounted = seat.check.cost > 0 && (isPassed || !seat.passed);
      if (isCounted) seat.book.tally.count(decision, seat.check.cost);
      decisions.push(decision);
    }
    return decisions;
  }

  #lane(index: number): Lane {
    const lane = this.#lanes[index];
    invariant(lane !== undefined, `there is no lane ${index}`);
    return lane;
  }
}
