/**
 * The engine of one pod: decides checks from its own buckets and says what to tell the store.
 *
 * It is synchronous and passive. Every call takes the instant, `tick` takes chance as well, and
 * what should happen outside leaves as values ("exchange this batch"). An adapter performs them:
 * the daemon with timers and Redis, the simulator with its virtual clock and network.
 *
 * The adapter's whole duty:
 *   1. call `decide` for checks, `replied`/`failed` for every exchange that ended,
 *      `callReplied`/`callFailed` for every call, `membershipChanged`
 *      when the fleet's size was told;
 *   2. after any call, see that `tick` runs no later than `wakeAt` (at once when it is not later
 *      than now), and perform the effects that it returns.
 */
import { Accounts } from "./accounts.ts";
import { Books, type FleetModeTerms } from "./books.ts";
import { type Book, BucketTable, EXACT_ROW } from "./bucket-table.ts";
import type { Check, Decision } from "./decision.ts";
import { DecisionDesk } from "./decision-desk.ts";
import type { Effect, ExchangeTrouble, Held, MembershipView } from "./effect.ts";
import { Eviction } from "./eviction.ts";
import { type BatchReply, REPLY_FIELDS } from "./exchange.ts";
import { FallbackBuckets } from "./fallback-buckets.ts";
import { FleetSize } from "./fleet-size.ts";
import { HeldChecks } from "./held-checks.ts";
import { Housekeeping } from "./housekeeping.ts";
import { HybridBuckets } from "./hybrid.ts";
import { HYBRID_ROW } from "./hybrid-row.ts";
import { invariant } from "./invariant.ts";
import { Lane } from "./lane.ts";
import { type Limit, limitForKey } from "./limit.ts";
import { bandOf, type LimitStanding, type ModeChoice, overAdmissionBound } from "./mode-choice.ts";
import { RestedRows } from "./rested-rows.ts";
import { RowSchedule } from "./row-schedule.ts";
import type { StoreCallReply } from "./store-call.ts";
import { StoreCalls } from "./store-calls.ts";
import { StoreDecided } from "./store-decided.ts";
import { StoreHealth } from "./store-health.ts";
import { StoreLink } from "./store-link.ts";
import { type Counts, type Figures, noReconciles } from "./tally.ts";
import type { DurationUs, InstantUs } from "./units.ts";
import { Verdicts } from "./verdicts.ts";

export interface PodLimiterOptions {
  readonly limits: readonly Limit[];
  /** No store: this pod is the whole fleet and keeps ideal buckets. */
  readonly sole: boolean;
  /** Batch sequences of the coordinator. */
  readonly lanes: number;
  /**
   * A batch unanswered for longer is sent again; the engine raises it to three mean round trips.
   */
  readonly commandTimeoutUs: DurationUs;
  /** No check is held for longer. */
  readonly decisionTimeoutUs: DurationUs;
  /** Most keys tracked at once; beyond it the longest idle are evicted. */
  readonly keysMax: number;
  /** Tells this pod from others where phases must differ; any string. */
  readonly podId: string;
  /** Engines in each pod of the fleet, every one a member of it; 1 when left out. */
  readonly membersPerPod?: number;
}

export class PodLimiter {
  readonly #options: PodLimiterOptions;
  readonly #table: BucketTable;
  readonly #books = new Books();
  readonly #fleet: FleetSize;
  readonly #held = new HeldChecks();
  readonly #lanes: readonly Lane[];
  readonly #health: StoreHealth;
  readonly #link: StoreLink;
  readonly #calls: StoreCalls;
  readonly #desk: DecisionDesk;
  readonly #housekeeping: Housekeeping;
  #band: number;
  #largeCosts: readonly string[] = [];
  readonly #reconciled = noReconciles();

  constructor(options: PodLimiterOptions, now: InstantUs) {
    this.#options = options;
    const { sole, podId, commandTimeoutUs, decisionTimeoutUs, membersPerPod = 1 } = options;
    const fields = sole ? EXACT_ROW : HYBRID_ROW;
    const table = new BucketTable(fields, options.keysMax, sole ? undefined : new RestedRows());
    const hybrid = new HybridBuckets(table);
    const fallback = new FallbackBuckets(table);
    const lanes = Array.from({ length: options.lanes }, (_, index) => new Lane(index));
    const fleet = new FleetSize(membersPerPod);
    this.#fleet = fleet;
    const held = this.#held;
    const health = new StoreHealth(lanes, fleet, commandTimeoutUs);
    const schedule = new RowSchedule(table, hybrid, held, lanes);
    const timeouts = { commandTimeoutUs, decisionTimeoutUs };
    const pods = (): number => fleet.pods(this.#books.assumedPods);
    const hold = (at: InstantUs): number => fleet.hold(at, this.#books.margin);
    const calls = new StoreCalls({ table, held, schedule, lanes, ...timeouts, pods, hold });
    const storeDecided = new StoreDecided({ table, fallback, schedule, calls });
    schedule.inspectLease = (slot, at) => calls.inspect(slot, at);
    const buckets = { table, hybrid, fallback, storeDecided };
    const parts = { ...buckets, held, lanes, schedule, health, calls, commandTimeoutUs };
    const link = new StoreLink(parts);
    this.#table = table;
    this.#lanes = lanes;
    this.#health = health;
    this.#link = link;
    this.#calls = calls;
    const verdicts = new Verdicts({ ...parts, podId, fleet });
    const eviction = new Eviction({ ...parts, sole, link });
    const deciding = { ...parts, sole, verdicts, eviction };
    const accounts = new Accounts({ ...deciding, podId, fleet, link });
    const books = this.#books;
    this.#desk = new DecisionDesk({ ...deciding, ...timeouts, books, accounts });
    this.#housekeeping = new Housekeeping({ ...parts, sole, fleet }, now);
    // Until the fleet is counted, limits are kept as a fleet of the assumed size would keep them.
    const assumed = options.limits.map(({ fallback: { maxPods } }) => membersPerPod * maxPods);
    this.#band = bandOf(Math.max(1, ...assumed));
    this.configChanged(now, options.limits);
  }

  /** When `tick` has something to do; not later than now for at once, Infinity for never. */
  get wakeAt(): InstantUs {
    if (this.#desk.hasAnswers) return Number.NEGATIVE_INFINITY;
    const storeAt = Math.min(this.#link.wakeAt, this.#calls.wakeAt);
    return Math.min(this.#housekeeping.sweepAt, this.#held.nextDeadline, storeAt);
  }

  /** Decides all checks or none; see `Decider.decide`. @param checks - 1 to `CHECKS_MAX`. */
  decide(now: InstantUs, checks: readonly Check[]): readonly Decision[] | Held {
    return this.#desk.decide(now, checks);
  }

  /** Debits or, when the cost is negative, refunds unconditionally; see `Decider.report`. */
  report(now: InstantUs, check: Check): Decision {
    return this.#desk.report(now, check);
  }

  /** @param draw - A fresh number uniform in [0, 1) at each call. */
  tick(now: InstantUs, draw: () => number): Effect[] {
    for (const held of this.#held.expired(now)) this.#desk.settle(now, held, false);
    const fleet = {
      pods: this.#fleet.pods(this.#books.assumedPods),
      hold: this.#fleet.hold(now, this.#books.margin),
    };
    const effects = this.#desk.takeAnswers();
    if (!this.#options.sole) {
      for (const batch of this.#link.tick(now, fleet, draw))
        effects.push({ kind: "exchange", batch });
      for (const call of this.#calls.tick(now)) effects.push({ kind: "call", call });
    }
    if (now >= this.#housekeeping.sweepAt) this.#housekeeping.sweep(now);
    return effects;
  }

  /** A reply to the batch `seq` of `lane`. Late, repeated and foreign replies are recognised. */
  replied(now: InstantUs, lane: number, seq: number, reply: BatchReply): void {
    this.#reconciled.ok += 1;
    this.#reconciled.keys += reply.entries.length / REPLY_FIELDS;
    for (const held of this.#link.replied(now, this.#lane(lane), seq, reply)) {
      this.#desk.settle(now, held, true);
    }
  }

  /** A reply to the call `id`. */
  callReplied(now: InstantUs, id: number, reply: StoreCallReply): void {
    for (const held of this.#calls.replied(now, id, reply)) this.#desk.settle(now, held, true);
  }

  /** The call `id` failed; it is not tried again. */
  callFailed(now: InstantUs, id: number, trouble: ExchangeTrouble): void {
    this.#reconciled[trouble] += 1;
    this.#calls.failed(now, id);
  }

  /** An exchange of the batch `seq` of `lane` failed; it will be tried again. */
  failed(now: InstantUs, lane: number, seq: number, trouble: ExchangeTrouble): void {
    this.#reconciled[trouble] += 1;
    this.#link.failed(now, this.#lane(lane), seq);
  }

  /** The fleet was counted (heartbeat answered, static configuration, ...). */
  membershipChanged(now: InstantUs, view: MembershipView): void {
    this.#fleet.counted(now, view.pods, view.silent);
    this.#follow(now, view.band ?? bandOf(view.pods), view.largeCosts ?? []);
    for (const lane of this.#lanes) {
      // A lane that gave up on a batch and has nothing to ask learns here that the store is back.
      if (lane.phase === "free" && !lane.hasDue) lane.free();
    }
  }

  /**
   * A source that does not depend on the store lists the fleet's pods, also while the store is
   * away.
   *
   * @param pods - Undefined when the source has been out of reach for a while.
   */
  membershipListed(now: InstantUs, pods: number | undefined): void {
    this.#fleet.listed(now, pods);
  }

  /** A heartbeat failed: the store is away as far as idle lanes can tell. */
  membershipFailed(now: InstantUs): void {
    this.#fleet.failed(now);
  }

  /** Puts other limits in force; see docs/design.md for what happens to live buckets. */
  configChanged(now: InstantUs, limits: readonly Limit[]): void {
    this.#putInForce(now, this.#books.resolve(this.#modeTerms(), limits));
  }

  /** Limits for which this pod lately saw a cost that is a large part of the burst. */
  largeCosts(now: InstantUs): readonly string[] {
    return this.#desk.largeCosts(now);
  }

  /** How a limit is kept now, why, and what that costs. */
  standing(limit: Limit): LimitStanding {
    const book = this.#books.of(limit);
    const choice = this.#books.choiceOf(limit) as ModeChoice;
    if (this.#options.sole) {
      return { mode: "sole", reason: "one pod without a store", intervalUs: 0, boundTokens: 0 };
    }
    const pods = this.#fleet.pods(this.#books.assumedPods);
    const boundTokens = overAdmissionBound(book.limit, choice, pods);
    return { ...choice, boundTokens };
  }

  /** The fleet's size or its costs may ask for other modes. */
  #follow(now: InstantUs, band: number, largeCosts: readonly string[]): void {
    const isSame = band === this.#band && largeCosts.join() === this.#largeCosts.join();
    if (isSame) return;
    this.#band = band;
    this.#largeCosts = largeCosts;
    this.#putInForce(now, this.#books.resolve(this.#modeTerms()));
  }

  #modeTerms(): FleetModeTerms {
    const { decisionTimeoutUs } = this.#options;
    return { band: this.#band, largeCosts: this.#largeCosts, decisionTimeoutUs };
  }

  #putInForce(now: InstantUs, removed: readonly Book[]): void {
    for (const book of this.#books.all()) {
      for (const [key, slot] of book.slots) {
        this.#housekeeping.relimit(slot, limitForKey(book.limit, key), now);
      }
    }
    for (const book of removed) {
      for (const slot of [...book.slots.values()]) {
        if (!this.#options.sole) {
          this.#link.orphan(slot, now);
          this.#calls.forget(slot);
        }
        this.#table.remove(slot);
      }
    }
    if (removed.length > 0) this.#held.dropRows((slot) => this.#table.isLive(slot));
  }

  /**
   * Begins a graceful leave: everything unreported becomes due, stock is given back and no more is
   * asked for. The caller ticks until `settled`, then leaves the membership.
   */
  beginLeave(_now: InstantUs): void {
    if (this.#options.sole) return;
    this.#link.beginLeave();
    this.#calls.beginLeave();
  }

  /** Nothing is unreported and no batch is unanswered. */
  get settled(): boolean {
    return this.#options.sole || (this.#link.isSettled && this.#calls.isSettled);
  }

  /** Figures that take no look at single keys. */
  counts(now: InstantUs): Counts {
    const { sole } = this.#options;
    return {
      limits: [...this.#books.all()].map(({ limit, tally }) => ({ name: limit.name, tally })),
      trackedKeys: this.#table.size,
      evictedKeys: this.#table.evicted,
      pods: sole ? 1 : this.#fleet.pods(this.#books.assumedPods),
      listing: this.#fleet.listing,
      fallbackActive: !sole && this.#health.isIsolated(now),
      storeUp: sole || this.#health.isUp(now),
      lostTokens: this.#link.lost,
      reconciled: { ...this.#reconciled },
    };
  }

  figures(now: InstantUs): Figures {
    const limits = [...this.#books.all()].map((book) => this.#housekeeping.figuresOf(book, now));
    return { ...this.counts(now), limits };
  }

  #lane(index: number): Lane {
    const lane = this.#lanes[index];
    invariant(lane !== undefined, `there is no lane ${index}`);
    return lane;
  }
}
