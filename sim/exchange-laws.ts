/**
 * Laws that can be read off the traffic between pods and store, without looking into either:
 *
 * - I3 at every grant, all stock that pods may still use fits into what the key has available.
 * - I4 the deficit is whole, and lies between 0 and `(b + maxDebt) P`.
 * - I5 no batch is applied twice, whatever the network repeats.
 * - clock: within an epoch the store's time never goes back for those who hear it.
 * - share: no pod's share is below its part of the prior, and none is above 1.
 * - count: no pod uses a smaller N than it was told within the last 3 s.
 */
import {
  type Batch,
  type BatchReply,
  ENTRY,
  ENTRY_FIELDS,
  REPLY,
  REPLY_FIELDS,
} from "../src/core/exchange.ts";
import type { Mode } from "../src/core/limit.ts";
import { CALL, type StoreCall, type StoreCallReply } from "../src/core/store-call.ts";
import type { DurationUs, InstantUs, Tokens } from "../src/core/units.ts";
import { entriesOf } from "./call-laws.ts";

/** A level is computed in doubles from whole numbers; anything beyond is no rounding. */
const ROUNDING = 1e-6;

/**
 * After the store lost state its ledger is wrong until both slots have passed: pods take back what
 * an older replica never knew. No grant is judged meanwhile.
 */
const LEDGER_HEALS_US: DurationUs = 2_000_000;

/** N is lowered later than this. */
const COUNT_HELD_US: DurationUs = 3_000_000;

/** Estimates fade with a time constant of this many intervals. */
const TAU_INTERVALS = 5;

interface Stock {
  readonly tokens: Tokens;
  /** Store time after which the pod may not use it any more. */
  readonly untilUs: InstantUs;
}

/** A key's demand, recomputed from the reports. */
interface Demand {
  sum: number;
  atUs: InstantUs;
}

export class ExchangeLaws {
  readonly #violated: (law: string, text: string) => void;
  readonly #nowUs: () => InstantUs;
  readonly #applied: Map<string, number> = new Map();
  readonly #stock: Map<string, Map<string, Stock>> = new Map();
  readonly #demand: Map<string, Demand> = new Map();
  readonly #heard: Map<number, { epoch: number; nowUs: InstantUs }> = new Map();
  readonly #told: Map<string, { pods: number; atUs: InstantUs }[]> = new Map();
  #amnesia = false;
  /** Grants are judged from here on, in true time. */
  #judgesFromUs: InstantUs = 0;
  /** The store's time in the last reply. */
  #lastUs: InstantUs = 0;

  /** @param nowUs - True time. */
  constructor(violated: (law: string, text: string) => void, nowUs: () => InstantUs) {
    this.#violated = violated;
    this.#nowUs = nowUs;
  }

  get stockOut(): Tokens {
    let out = 0;
    for (const holders of this.#stock.values()) {
      for (const stock of holders.values()) if (stock.untilUs >= this.#lastUs) out += stock.tokens;
    }
    return out;
  }

  storeForgot(): void {
    this.#amnesia = true;
    this.#judgesFromUs = this.#nowUs() + LEDGER_HEALS_US;
    this.#stock.clear();
    this.#heard.clear();
    // Demand is kept: the store's own memory of it can only be shorter, which asks for more.
  }

  /** @param mode - Only of limits in this mode. */
  consumedIn(batch: Batch, mode?: Mode): Tokens {
    let tokens = 0;
    for (let i = 0; i < batch.keys.length; i += 1) {
      if (mode !== undefined && batch.limits[i]?.mode !== mode) continue;
      tokens += batch.entries[i * ENTRY_FIELDS + ENTRY.consumed] ?? 0;
    }
    return tokens;
  }

  /** @param holder - Pod and incarnation. */
  exchanged(holder: string, batch: Batch, reply: BatchReply): void {
    if (!reply.duplicate) this.#once(`${holder}.${batch.lane}.${batch.seq}`);
    this.#clock(batch, reply);
    this.#count(holder, batch);
    this.#lastUs = reply.nowUs;
    for (let i = 0; i < batch.keys.length; i += 1) {
      const entry = batch.entries.subarray(i * ENTRY_FIELDS, (i + 1) * ENTRY_FIELDS);
      const answer = reply.entries.subarray(i * REPLY_FIELDS, (i + 1) * REPLY_FIELDS);
      const name = `${batch.limits[i]?.name ?? ""} ${batch.keys[i] ?? ""}`;
      this.#deficit(name, entry, answer);
      if (reply.duplicate) continue;
      // Where the mode may change, the store also counts demand of calls, which are not seen here.
      if (batch.limits[i]?.isAuto !== true) {
        this.#share(name, batch, reply.nowUs, entry, answer);
      }
      this.#grant(holder, name, reply.nowUs, entry, answer);
    }
  }

  /** A call of leased or exact limits: it tells the store's time, and demand. */
  called(call: StoreCall, reply: StoreCallReply): void {
    this.#clock(call, reply);
    for (const { name, entry } of entriesOf(call, reply)) {
      this.#demanded(name, reply.nowUs, entry[CALL.intervalSeconds], entry[CALL.demand]);
    }
  }

  #clock({ lane }: { lane: number }, { epoch, nowUs }: { epoch: number; nowUs: InstantUs }): void {
    const last = this.#heard.get(lane);
    if (last !== undefined && last.epoch === epoch && nowUs < last.nowUs) {
      this.#violated("clock", `lane ${lane}: ${last.nowUs - nowUs} us back`);
    }
    this.#heard.set(lane, { epoch, nowUs });
  }

  counted(holder: string, pods: number): void {
    const nowUs = this.#nowUs();
    const told = this.#told.get(holder) ?? [];
    const recent = told.filter((count) => nowUs - count.atUs < COUNT_HELD_US);
    recent.push({ pods, atUs: nowUs });
    this.#told.set(holder, recent);
  }

  #once(id: string): void {
    const times = (this.#applied.get(id) ?? 0) + 1;
    this.#applied.set(id, times);
    if (times > 1 && !this.#amnesia) this.#violated("I5", `batch ${id} was applied ${times} times`);
  }

  #count(holder: string, batch: Batch): void {
    const nowUs = this.#nowUs();
    for (const told of this.#told.get(holder) ?? []) {
      // A batch may have been on its way when the count changed.
      const age = nowUs - told.atUs;
      if (age > COUNT_HELD_US || age < 200_000 || batch.pods >= told.pods) continue;
      this.#violated("count", `pod ${holder} uses N = ${batch.pods}, told ${told.pods} before`);
    }
  }

  #deficit(name: string, entry: Float64Array, answer: Float64Array): void {
    const burst = entry[ENTRY.burst] ?? 0;
    const maxDebt = entry[ENTRY.maxDebt] ?? 0;
    const level = answer[REPLY.level] ?? Number.NaN;
    const deficit = (burst - level) * (entry[ENTRY.period] ?? 1);
    const whole = Math.abs(deficit - Math.round(deficit)) <= Math.max(1, Math.abs(deficit)) * 1e-9;
    if (level <= burst + ROUNDING && level >= -maxDebt - ROUNDING && whole) return;
    this.#violated("I4", `${name}: level ${level} of burst ${burst}, max debt ${maxDebt}`);
  }

  #share(
    name: string,
    batch: Batch,
    nowUs: InstantUs,
    entry: Float64Array,
    answer: Float64Array,
  ): void {
    const interval = entry[ENTRY.intervalSeconds] ?? 1;
    const demand = this.#demanded(name, nowUs, interval, entry[ENTRY.demand]);
    const rate =
      (entry[ENTRY.refill] ?? 0) / ((entry[ENTRY.period] ?? 1) * (entry[ENTRY.tickUs] ?? 1));
    const perInterval = rate * 1e6 * interval;
    const prior = Math.max(perInterval, Math.min(0.1 * (entry[ENTRY.burst] ?? 0), batch.pods));
    const least = prior / batch.pods / (demand + prior);
    const share = answer[REPLY.share] ?? Number.NaN;
    if (share >= least * (1 - 1e-3) && share <= 1 + ROUNDING) return;
    this.#violated("share", `${name}: a share of ${share}, at least ${least} is due`);
  }

  /** Adds to the demand of a key. @returns All that has not faded. */
  #demanded(name: string, nowUs: InstantUs, interval = 1, tokens: Tokens = 0): Tokens {
    const demand = this.#demand.get(name) ?? { sum: 0, atUs: nowUs };
    const passedS = Math.max(0, nowUs - demand.atUs) / 1e6;
    demand.sum = demand.sum * Math.exp(-passedS / (TAU_INTERVALS * interval)) + tokens;
    demand.atUs = Math.max(nowUs, demand.atUs);
    this.#demand.set(name, demand);
    return demand.sum;
  }

  #grant(
    holder: string,
    name: string,
    nowUs: InstantUs,
    entry: Float64Array,
    answer: Float64Array,
  ): void {
    const granted = answer[REPLY.granted] ?? 0;
    const available = answer[REPLY.available] ?? 0;
    const holders = this.#stock.get(name) ?? new Map<string, Stock>();
    this.#stock.set(name, holders);
    holders.set(holder, {
      tokens: (entry[ENTRY.held] ?? 0) + granted,
      untilUs: nowUs + Math.round((answer[REPLY.stockSeconds] ?? 0) * 1e6),
    });
    if (granted <= 0 || this.#nowUs() < this.#judgesFromUs) return;
    let out = 0;
    for (const [other, stock] of holders) {
      if (stock.untilUs < nowUs) holders.delete(other);
      else out += stock.tokens;
    }
    if (out > available + ROUNDING) {
      this.#violated(
        "I3",
        `${name}: ${out} tokens of stock are out, ${available.toFixed(1)} there`,
      );
    }
  }
}
