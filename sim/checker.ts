/**
 * The laws that must hold after every event, whatever fails.
 *
 * - I1 admissions never exceed `b + r T` by more than the bound and what the faults so far explain
 *   (`sim/allowance.ts`): unreported consumption less the level is exactly the virtual bucket's debt.
 * - I3 stock handed out never exceeds what the key holds, judged at every grant from the traffic.
 * - I4 the deficit is whole and lies between 0 and `(b + maxDebt) P`, judged from every reply.
 * - I5 no batch is applied twice, whatever the network repeats.
 * - I7 a fleet without its store admits at most the margin.
 * - clock: the store's time never goes back for those who hear it, within one epoch.
 *
 * I2 and I6 belong to the leased and the exact mode. I8 (no decision depends on wall time) is a
 * comparison of two runs, see the determinism test.
 */
import {
  type Batch,
  type BatchReply,
  ENTRY,
  ENTRY_FIELDS,
  REPLY,
  REPLY_FIELDS,
} from "../src/core/exchange.ts";
import type { InstantUs, Tokens } from "../src/core/units.ts";
import type { Violation } from "./run-result.ts";
import type { ExchangeObserver } from "./scheme.ts";

/** After this many the rest says nothing new. */
const VIOLATIONS_MAX = 5;

/**
 * After the store lost state its ledger is wrong until both slots have passed: pods take back what
 * an older replica never knew. No grant is judged meanwhile.
 */
const LEDGER_HEALS_US = 2_000_000;

/** A level is computed in doubles from whole numbers; anything beyond is no rounding. */
const ROUNDING = 1e-6;

interface Stock {
  readonly tokens: Tokens;
  /** Store time after which the pod may not use it any more. */
  readonly untilUs: InstantUs;
}

export class Checker implements ExchangeObserver {
  readonly violations: Violation[] = [];
  #nowUs: () => InstantUs = () => 0;
  readonly #applied: Map<string, number> = new Map();
  readonly #stock: Map<string, Map<string, Stock>> = new Map();
  readonly #heard: Map<number, { epoch: number; nowUs: InstantUs }> = new Map();
  #amnesia = false;
  /** Grants are judged from here on, in true time. */
  #judgesFromUs: InstantUs = 0;
  /** The store's time in the last reply. */
  #lastUs: InstantUs = 0;

  /** Tells the time of what is found. */
  watch(nowUs: () => InstantUs): void {
    this.#nowUs = nowUs;
  }

  violated(invariant: string, text: string): void {
    if (this.violations.length >= VIOLATIONS_MAX) return;
    this.violations.push({ invariant, atUs: this.#nowUs(), text });
  }

  /** I1, after an admission. */
  admitted(limit: string, key: string, debt: Tokens, allowed: Tokens): void {
    if (debt <= allowed + ROUNDING) return;
    this.violated(
      "I1",
      `${limit} ${key}: ${debt.toFixed(1)} tokens of debt, at most ${allowed.toFixed(1)} allowed`,
    );
  }

  /** Stock that pods may still use, over all keys, as the traffic tells it. */
  get stockOut(): Tokens {
    let out = 0;
    for (const holders of this.#stock.values()) {
      for (const stock of holders.values()) if (stock.untilUs >= this.#lastUs) out += stock.tokens;
    }
    return out;
  }

  /** The store lost state: what it had applied may rightly be applied again. */
  storeForgot(): void {
    this.#amnesia = true;
    this.#judgesFromUs = this.#nowUs() + LEDGER_HEALS_US;
    this.#stock.clear();
    this.#heard.clear();
  }

  exchanged(pod: number, incarnation: number, batch: Batch, reply: BatchReply): void {
    this.#once(`${pod}.${incarnation}.${batch.lane}.${batch.seq}`, reply);
    this.#clock(batch, reply);
    this.#lastUs = reply.nowUs;
    const count = batch.keys.length;
    for (let i = 0; i < count; i += 1) {
      this.#deficit(batch, reply, i);
      if (!reply.duplicate) this.#grant(`${pod}.${incarnation}`, batch, reply, i);
    }
  }

  #once(id: string, reply: BatchReply): void {
    if (reply.duplicate) return;
    const times = (this.#applied.get(id) ?? 0) + 1;
    this.#applied.set(id, times);
    if (times > 1 && !this.#amnesia) this.violated("I5", `batch ${id} was applied ${times} times`);
  }

  #clock(batch: Batch, reply: BatchReply): void {
    const last = this.#heard.get(batch.lane);
    if (last !== undefined && last.epoch === reply.epoch && reply.nowUs < last.nowUs) {
      this.violated("clock", `lane ${batch.lane}: ${last.nowUs - reply.nowUs} us back`);
    }
    this.#heard.set(batch.lane, { epoch: reply.epoch, nowUs: reply.nowUs });
  }

  #deficit(batch: Batch, reply: BatchReply, i: number): void {
    const entry = i * ENTRY_FIELDS;
    const burst = batch.entries[entry + ENTRY.burst] ?? 0;
    const maxDebt = batch.entries[entry + ENTRY.maxDebt] ?? 0;
    const period = batch.entries[entry + ENTRY.period] ?? 1;
    const level = reply.entries[i * REPLY_FIELDS + REPLY.level] ?? Number.NaN;
    const deficit = (burst - level) * period;
    const whole = Math.abs(deficit - Math.round(deficit)) <= Math.max(1, Math.abs(deficit)) * 1e-9;
    if (level <= burst + ROUNDING && level >= -maxDebt - ROUNDING && whole) return;
    this.violated("I4", `${batch.keys[i]}: level ${level} of burst ${burst}, max debt ${maxDebt}`);
  }

  /** I3: at a grant, all stock that may still be used fits into what is available. */
  #grant(holder: string, batch: Batch, reply: BatchReply, i: number): void {
    const at = i * REPLY_FIELDS;
    const granted = reply.entries[at + REPLY.granted] ?? 0;
    const stockSeconds = reply.entries[at + REPLY.stockSeconds] ?? 0;
    const available = reply.entries[at + REPLY.available] ?? 0;
    const held = batch.entries[i * ENTRY_FIELDS + ENTRY.held] ?? 0;
    const name = `${batch.limits[i]?.name ?? ""} ${batch.keys[i] ?? ""}`;
    const holders = this.#stock.get(name) ?? new Map<string, Stock>();
    this.#stock.set(name, holders);
    holders.set(holder, {
      tokens: held + granted,
      untilUs: reply.nowUs + Math.round(stockSeconds * 1e6),
    });
    if (granted <= 0 || this.#nowUs() < this.#judgesFromUs) return;
    let out = 0;
    for (const [other, stock] of holders) {
      if (stock.untilUs < reply.nowUs) holders.delete(other);
      else out += stock.tokens;
    }
    if (out > available + ROUNDING) {
      this.violated("I3", `${name}: ${out} tokens of stock are out, ${available.toFixed(1)} there`);
    }
  }
}
