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
import { Accounts, IDLE_US, Seat } from "./accounts.ts";
import {
  type Book,
  BucketTable,
  DEFICIT,
  DEFICIT_TICKS,
  DUE,
  EXACT_ROW,
  FALLBACK,
  HELD,
  IN_FLIGHT,
  USED_AT,
} from "./bucket-table.ts";
import type { Check, Decision } from "./decision.ts";
import { refilled, toTicks } from "./deficit-bucket.ts";
import { rescaleExact, touchExact } from "./exact-row.ts";
import { type Batch, type BatchReply, REPLY_FIELDS } from "./exchange.ts";
import { FallbackBuckets } from "./fallback-buckets.ts";
import { FleetSize } from "./fleet-size.ts";
import { type HeldCheck, HeldChecks } from "./held-checks.ts";
import { HybridBuckets } from "./hybrid.ts";
import { HYBRID_ROW, IN_FLIGHT_TOKENS, LEVEL, SHARE, UNREPORTED } from "./hybrid-row.ts";
import { invariant } from "./invariant.ts";
import { Lane } from "./lane.ts";
import { type Limit, limitForKey } from "./limit.ts";
import { RowSchedule } from "./row-schedule.ts";
import { StoreHealth } from "./store-health.ts";
import { StoreLink } from "./store-link.ts";
import { type Figures, type LimitFigures, type ReconcileCounts, Tally } from "./tally.ts";
import { type DurationUs, type InstantUs, type Tokens, US_PER_MS } from "./units.ts";

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

/** The size of the fleet as one source tells it. */
export interface MembershipView {
  /** Pods counted now, this one included. */
  readonly pods: number;
  /** Of these, pods that the store has not heard for a while. */
  readonly silent: number;
}

/** A check that waits for the store; the answer comes as an effect with the same number. */
export interface Held {
  readonly held: number;
}

export type Effect =
  | { readonly kind: "exchange"; readonly batch: Batch }
  | { readonly kind: "answer"; readonly held: number; readonly decisions: readonly Decision[] };

/** Why an exchange brought no reply. */
export type ExchangeTrouble = "timeout" | "unreachable" | "refused" | "malformed";

/** A check may name so many limits; seats for them are made once. */
export const CHECKS_MAX = 16;

/** Idle rows are looked for in steps: one part of the table at a time. */
const SWEEP_STEP_US: DurationUs = 250 * US_PER_MS;
const SWEEP_PARTS = 20;

export class PodLimiter {
  readonly #options: PodLimiterOptions;
  readonly #table: BucketTable;
  readonly #hybrid: HybridBuckets;
  readonly #fallback: FallbackBuckets;
  readonly #fleet = new FleetSize();
  readonly #held = new HeldChecks();
  readonly #lanes: readonly Lane[];
  readonly #health: StoreHealth;
  readonly #link: StoreLink;
  readonly #accounts: Accounts;
  readonly #seats: readonly Seat[] = Array.from({ length: CHECKS_MAX }, () => new Seat());
  readonly #reconciled: ReconcileCounts = {
    ok: 0,
    timeout: 0,
    unreachable: 0,
    refused: 0,
    malformed: 0,
    keys: 0,
  };
  #books: Map<string, Book> = new Map();
  #answers: Effect[] = [];
  #sweepAt: InstantUs;
  #sweepFrom = 0;

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
    this.#hybrid = hybrid;
    this.#fallback = fallback;
    this.#lanes = lanes;
    this.#health = health;
    this.#link = link;
    this.#accounts = new Accounts({ ...parts, sole, podId, fleet, link });
    this.#sweepAt = now + SWEEP_STEP_US;
    this.configChanged(now, options.limits);
  }

  /** When `tick` has something to do; not later than now for at once, Infinity for never. */
  get wakeAt(): InstantUs {
    if (this.#answers.length > 0) return Number.NEGATIVE_INFINITY;
    const sweepAt = this.#table.size > 0 ? this.#sweepAt : Number.POSITIVE_INFINITY;
    return Math.min(sweepAt, this.#held.nextDeadline, this.#link.wakeAt);
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
    const book = this.#bookOf(check.limit);
    // A refund needs a row as much as a debit does, so the seat is taken as for a cost of one.
    this.#accounts.sit(seat, book, { ...check, cost: 1 }, now);
    seat.check = check;
    this.#accounts.charge(seat, now);
    seat.check = { ...check, cost: 0 };
    seat.passed = true;
    return this.#accounts.verdict(seat, now, false);
  }

  /** @param draw - A fresh number uniform in [0, 1) at each call. */
  tick(now: InstantUs, draw: () => number): Effect[] {
    for (const held of this.#held.expired(now)) this.#settle(now, held, false);
    const pods = this.#fleet.pods(this.#assumedPods());
    const effects = this.#answers;
    this.#answers = [];
    if (!this.#options.sole) {
      for (const batch of this.#link.tick(now, pods, draw))
        effects.push({ kind: "exchange", batch });
    }
    if (now >= this.#sweepAt) this.#sweep(now);
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
    const books = new Map<string, Book>();
    for (const limit of limits) {
      const book = this.#books.get(limit.name);
      if (book === undefined) {
        books.set(limit.name, { limit, slots: new Map(), tally: new Tally() });
        continue;
      }
      book.limit = limit;
      for (const [key, slot] of book.slots) this.#relimit(now, slot, limitForKey(limit, key));
      books.set(limit.name, book);
    }
    for (const [name, book] of this.#books) {
      if (books.has(name)) continue;
      for (const slot of [...book.slots.values()]) {
        if (!this.#options.sole) this.#link.orphan(slot, now);
        this.#table.remove(slot);
      }
    }
    this.#books = books;
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
      limits: [...this.#books.values()].map((book) => this.#figuresOf(book)),
      trackedKeys: this.#table.size,
      evictedKeys: this.#table.evicted,
      pods: sole ? 1 : this.#fleet.pods(this.#assumedPods()),
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
      this.#accounts.sit(seat, this.#bookOf(check.limit), check, now);
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
    const checks = held.checks.filter((check) => this.#books.has(check.limit.name));
    const isPassed = this.#attempt(now, checks);
    const decisions = this.#conclude(now, checks.length, isPassed, held.asked, byStore);
    // A limit that a reload removed while the check was held stands against nothing any more.
    const all = held.checks.map(
      (check) => decisions[checks.indexOf(check)] ?? unlimited(check.limit),
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
      const decision = this.#accounts.verdict(seat, now, byStore);
      // What passed but was undone by another limit was neither admitted nor denied here.
      const isCounted = seat.check.cost > 0 && (isPassed || !seat.passed);
      if (isCounted) seat.book.tally.count(decision, seat.check.cost);
      decisions.push(decision);
    }
    return decisions;
  }

  #bookOf(limit: Limit): Book {
    const book = this.#books.get(limit.name);
    invariant(book !== undefined, `limit ${limit.name} is not configured`);
    return book;
  }

  #lane(index: number): Lane {
    const lane = this.#lanes[index];
    invariant(lane !== undefined, `there is no lane ${index}`);
    return lane;
  }

  #assumedPods(): number {
    let most = 1;
    for (const { limit } of this.#books.values()) most = Math.max(most, limit.fallback.maxPods);
    return most;
  }

  /** Puts a live row under changed numbers: its level is scaled, nothing is lost or given. */
  #relimit(now: InstantUs, slot: number, to: Limit): void {
    const from = this.#table.limitOf(slot);
    if (from === to) return;
    if (this.#options.sole) {
      touchExact(this.#table, slot, from, now);
      rescaleExact(this.#table, slot, from, to, now);
    } else {
      const isAlone = ((this.#table.flags[slot] as number) & FALLBACK) !== 0;
      if (isAlone) this.#fallback.relimit(slot, to, now);
      else this.#hybrid.relimit(slot, from, to, now);
    }
    this.#table.setLimit(slot, to);
  }

  /** Forgets rows that have been idle and have nothing to tell, one part of the table at a time. */
  #sweep(now: InstantUs): void {
    this.#sweepAt = now + SWEEP_STEP_US;
    const rows = this.#table.rows;
    const steps = Math.ceil(rows / SWEEP_PARTS);
    for (let step = 0; step < steps; step += 1) {
      const slot = this.#sweepFrom;
      this.#sweepFrom = slot + 1 >= rows ? 0 : slot + 1;
      if (this.#table.isLive(slot) && this.#isForgettable(slot, now)) this.#table.remove(slot);
    }
  }

  #isForgettable(slot: number, now: InstantUs): boolean {
    const { cells } = this.#table;
    const at = this.#table.at(slot);
    if (this.#options.sole) {
      const shape = this.#table.limitOf(slot);
      const since = toTicks(shape, now) - (cells[at + DEFICIT_TICKS] as number);
      return refilled(shape, cells[at + DEFICIT] as number, since) === 0;
    }
    const flags = this.#table.flags[slot] as number;
    if ((flags & (DUE | IN_FLIGHT | HELD)) !== 0 || cells[at + UNREPORTED] !== 0) return false;
    if (now - (cells[at + USED_AT] as number) <= IDLE_US) return false;
    // A fallback bucket that is forgotten would come back full.
    return (flags & FALLBACK) === 0 || this.#fallback.wouldBeFull(slot, now);
  }

  #figuresOf(book: Book): LimitFigures {
    const { cells } = this.#table;
    let unreconciled = 0;
    let debt = 0;
    let shares = 0;
    for (const slot of this.#options.sole ? [] : book.slots.values()) {
      const at = this.#table.at(slot);
      unreconciled += (cells[at + UNREPORTED] as number) + (cells[at + IN_FLIGHT_TOKENS] as number);
      debt = Math.max(debt, -(cells[at + LEVEL] as number));
      shares += cells[at + SHARE] as number;
    }
    const equal = this.#options.sole ? 1 : 1 / this.#fleet.pods(book.limit.fallback.maxPods);
    const share = this.#options.sole || book.slots.size === 0 ? equal : shares / book.slots.size;
    return { name: book.limit.name, tally: book.tally, unreconciled, debt, share };
  }
}

function unlimited(limit: Limit): Decision {
  return {
    limit,
    allowed: true,
    wouldDeny: false,
    reason: undefined,
    remaining: limit.burst,
    resetAfterUs: 0,
    retryAfterUs: 0,
    source: "local",
    degraded: false,
  };
}
