/**
 * A lane: one sequence of batches to the store, of which at most one is unanswered.
 *
 * A batch that brought no reply may or may not have been applied, so the same entries go again
 * under the same number until a reply comes; what was consumed meanwhile waits for the next
 * number. The store applies a number once. That is what makes reports exactly-once.
 *
 * The lane is also where the pod learns whether the store can be reached: by how long its oldest
 * batch has been unanswered, not by how long ago a key was reconciled (an idle key has no news and
 * is not isolated).
 */
import type { Batch } from "./exchange.ts";
import { Journal } from "./journal.ts";
import type { Limit } from "./limit.ts";
import { SlotQueue } from "./slot-queue.ts";
import type { StoreCall } from "./store-call.ts";
import { type DurationUs, type InstantUs, US_PER_MS, US_PER_SECOND } from "./units.ts";

/** A batch unanswered for this long means that the pod is isolated. */
export const STALE_US: DurationUs = US_PER_SECOND;
/** Longest pause between two sends of one batch while isolated. */
const RESEND_PAUSE_MAX_US: DurationUs = 250 * US_PER_MS;
/** The store forgets a sequence number after ten minutes; a batch is given up well before. */
export const BATCH_LIFE_US: DurationUs = 300 * US_PER_SECOND;
const RTT_START_US: DurationUs = 5 * US_PER_MS;
const RTT_GAIN = 0.1;
/** A late lane is waited for at least so long, however fast its replies were. */
const LATE_WAIT_US: DurationUs = 2 * US_PER_MS;

/** A report of a row that no longer exists. */
export interface Orphan {
  readonly limit: Limit;
  readonly key: string;
  readonly entry: Float64Array;
}

/** A batch with its entries, from the cut to the reply. */
export interface CutBatch {
  readonly seq: number;
  /** The row of each entry; -1 for an orphan. */
  readonly slots: Int32Array;
  readonly limits: readonly Limit[];
  readonly keys: readonly string[];
  readonly entries: Float64Array;
  readonly cutAt: InstantUs;
  readonly firstSentAt: InstantUs;
  sends: number;
}

/** `waiting`: sent, no reply yet; `pausing`: to be sent again at `resendAt`. */
export type LanePhase = "free" | "waiting" | "pausing";

export class Lane {
  readonly index: number;
  /** Rows to be cut into the next batch; those with held checks go first. */
  readonly due: SlotQueue = new SlotQueue();
  readonly urgent: SlotQueue = new SlotQueue();
  readonly orphans: Orphan[] = [];
  phase: LanePhase = "free";
  batch: CutBatch | undefined;
  /** While waiting: when patience ends. While pausing: when to send again. */
  actAt: InstantUs = Number.POSITIVE_INFINITY;
  /** First send of the unanswered batch; Infinity when all is answered. */
  unansweredSince: InstantUs = Number.POSITIVE_INFINITY;
  lastReplyAt: InstantUs = Number.NEGATIVE_INFINITY;
  /** Sent at, of the first call of those that brought no reply since the last one that did. */
  callsLostSince: InstantUs = Number.POSITIVE_INFINITY;
  /** When to ask again whether the store is there, while calls are being lost. */
  probeAt: InstantUs = Number.POSITIVE_INFINITY;
  /** The last outage that made the pod isolated: how long, and when it ended. */
  outageUs: DurationUs = 0;
  recoveredAt: InstantUs = Number.NEGATIVE_INFINITY;
  /** After an outage the next batch waits a random while, so that a fleet does not act as one. */
  recovering = false;
  quietUntil: InstantUs = Number.NEGATIVE_INFINITY;
  epoch = 0;
  readonly journal: Journal = new Journal();
  rttUs: DurationUs = RTT_START_US;
  /** Since when calls have been open without a reply to one of them; Infinity when none is. */
  #callsOpenSince: InstantUs = Number.POSITIVE_INFINITY;
  /** Mean time to the reply of a call. */
  #callUs: DurationUs = RTT_START_US;
  /** Part of the refill that is held back, as the last batch said. */
  hold = 0;
  /** When the send before the last one was. */
  sentBefore: InstantUs = Number.NEGATIVE_INFINITY;
  #seq = 0;
  #sentAt: InstantUs = Number.NEGATIVE_INFINITY;
  #heardAt: InstantUs = 0;
  #heardSentAt: InstantUs = 0;
  /** The server's own time in the answer to the latest call that has one, and when it was sent. */
  #rawHeardAt: InstantUs = 0;
  #rawSentAt: InstantUs = Number.NEGATIVE_INFINITY;

  constructor(index: number) {
    this.index = index;
  }

  get hasDue(): boolean {
    return this.due.length + this.urgent.length + this.orphans.length > 0;
  }

  /** Since when the store owes this lane an answer; Infinity when it owes none. */
  get silentSince(): InstantUs {
    return Math.min(this.unansweredSince, this.callsLostSince);
  }

  nextSeq(): number {
    this.#seq += 1;
    return this.#seq;
  }

  /** How long to wait for a reply. */
  patienceUs(commandTimeoutUs: DurationUs): DurationUs {
    return Math.max(commandTimeoutUs, 3 * this.rttUs);
  }

  callSent(now: InstantUs): void {
    this.#callsOpenSince = Math.min(this.#callsOpenSince, now);
  }

  /** @param areOthersOpen - Other calls of this lane have no reply yet. */
  callAnswered(
    now: InstantUs,
    call: { readonly sentAt: InstantUs; readonly isLost: boolean },
    areOthersOpen: boolean,
  ): void {
    this.#callsOpenSince = areOthersOpen ? now : Number.POSITIVE_INFINITY;
    if (!call.isLost) this.#callUs += RTT_GAIN * (now - call.sentAt - this.#callUs);
  }

  /**
   * How long a check may wait for a call. Once calls have been open for as long as a check may
   * wait at most, the store is late: it will hardly answer in time, and each check that comes
   * waits only as long as a reply takes when all is well. So a store that begins to hang makes the
   * checks of one decision timeout slow and not those of the whole time until it counts as lost,
   * and a single call that got lost does not deny the next check.
   *
   * @param mostUs - The decision timeout.
   */
  waitUs(now: InstantUs, mostUs: DurationUs): DurationUs {
    if (now - this.#callsOpenSince < mostUs) return mostUs;
    return Math.min(mostUs, Math.max(LATE_WAIT_US, 4 * this.#callUs));
  }

  /** Marks the batch as sent now and dresses it with a fresh header. */
  send(
    now: InstantUs,
    pods: number,
    hold: number,
    commandTimeoutUs: DurationUs,
  ): Batch | undefined {
    const { batch } = this;
    if (batch === undefined) return undefined;
    batch.sends += 1;
    this.hold = hold;
    this.sentBefore = this.#sentAt;
    this.#sentAt = now;
    this.phase = "waiting";
    this.actAt = now + this.patienceUs(commandTimeoutUs);
    return {
      lane: this.index,
      seq: batch.seq,
      ...this.reference(now),
      pods,
      hold,
      limits: batch.limits,
      keys: batch.keys,
      entries: batch.entries,
    };
  }

  /**
   * The batch brought no reply this time. Pauses are flat, not exponential, until the pod is
   * isolated: with 30 % loss each way exponential pauses cost ten times the excess.
   *
   * @param draw - Uniform in [0, 1).
   */
  pause(now: InstantUs, intervalUs: DurationUs, commandTimeoutUs: DurationUs, draw: number): void {
    const isolated = now - this.silentSince >= STALE_US;
    const most = Math.min(this.patienceUs(commandTimeoutUs), intervalUs);
    this.phase = "pausing";
    this.actAt = now + (isolated ? RESEND_PAUSE_MAX_US * (0.5 + draw / 2) : most * draw);
  }

  /** Takes note of a reply and frees the lane. @returns The batch that is answered. */
  answered(now: InstantUs, storeNow: InstantUs, epoch: number): CutBatch | undefined {
    const { batch } = this;
    if (batch === undefined) return undefined;
    if (batch.sends === 1) {
      this.rttUs += RTT_GAIN * (Math.max(0, now - batch.firstSentAt) - this.rttUs);
    }
    this.heard(now, batch.firstSentAt, storeNow, epoch);
    this.free();
    return batch;
  }

  /** The store answered, a batch or a call. @param sentAt - First send of what is answered. */
  heard(now: InstantUs, sentAt: InstantUs, storeNow: InstantUs, epoch: number): void {
    const silence = now - this.silentSince;
    if (silence >= STALE_US) {
      this.outageUs = silence;
      this.recoveredAt = now;
      this.recovering = true;
    }
    if (epoch !== this.epoch || storeNow >= this.#heardAt) {
      this.#heardAt = storeNow;
      this.#heardSentAt = sentAt;
    }
    this.epoch = epoch;
    this.lastReplyAt = now;
    this.callsLostSince = Number.POSITIVE_INFINITY;
    this.probeAt = Number.POSITIVE_INFINITY;
  }

  /** What the store needs to tell a step of its clock from time. */
  reference(now: InstantUs): Pick<Batch, "epoch" | "heardAtUs" | "heardAgoUs"> {
    const heardAgoUs = this.#heardAt === 0 ? 0 : now - this.#heardSentAt;
    return { epoch: this.epoch, heardAtUs: this.#heardAt, heardAgoUs };
  }

  /** A call was answered. @param rawUs - The server's own time. */
  heardRaw(sentAt: InstantUs, rawUs: InstantUs): void {
    if (sentAt < this.#rawSentAt) return;
    this.#rawHeardAt = rawUs;
    this.#rawSentAt = sentAt;
  }

  /** What the store needs to tell that a call comes too late. */
  rawReference(now: InstantUs): Pick<StoreCall, "rawHeardUs" | "rawAgoUs"> {
    const rawAgoUs = this.#rawHeardAt === 0 ? 0 : now - this.#rawSentAt;
    return { rawHeardUs: this.#rawHeardAt, rawAgoUs };
  }

  /** Calls are being lost: whatever is sent now may be as well. */
  get isInDoubt(): boolean {
    return this.callsLostSince < Number.POSITIVE_INFINITY;
  }

  free(): void {
    this.batch = undefined;
    this.phase = "free";
    this.actAt = Number.POSITIVE_INFINITY;
    this.unansweredSince = Number.POSITIVE_INFINITY;
  }
}
