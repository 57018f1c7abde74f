/**
 * Laws of the calls that decide in the store, read off the traffic without looking into either end:
 *
 * - I2 what is out in leases and what is left never exceed the burst, at every call of either kind;
 *   and no pod admits a token of a leased limit that is not in a lease which it still holds.
 * - order: exact: in the order and the time of the store, no span sees more than `b + r T`.
 * - I6 exact: calls per key stay below admissions, plus `max(2 r, 50, n / 2)` a second, plus what
 *   `n` pods may ask once and have under way.
 * - I5 a call is decided once, whatever becomes of its reply.
 */
import {
  LEASE,
  LEASE_FIELDS,
  LEASE_REPLY,
  LEASE_REPLY_FIELDS,
  LEASE_REPORT_FIELDS,
  LEASE_SLOT_US,
  RUN_FIELDS,
  type StoreCall,
  type StoreCallReply,
  TAKE,
  TAKE_FIELDS,
  TAKE_REPLY,
  TAKE_REPLY_FIELDS,
} from "../src/core/store-call.ts";
import type { DurationUs, InstantUs, Tokens } from "../src/core/units.ts";
import { TakeMeter } from "./take-meter.ts";

/** A level is computed in doubles from whole numbers; anything beyond is no rounding. */
const ROUNDING = 1e-6;

/** Every lease that was out when something went wrong has ended after this. */
const LEASES_END_US: DurationUs = 1_500_000;

/** Calls of one lane that a pod may have under way. */
const IN_FLIGHT_PER_POD = 4;

/** Calls of one key a second that nobody admitted: twice per token, at least 50, half the pods. */
const IDLE_CALLS_MIN = 50;

interface Lease {
  readonly endsUs: InstantUs;
  tokens: Tokens;
}

interface ExactKey {
  readonly shape: string;
  readonly takes: TakeMeter;
  readonly sinceUs: InstantUs;
  readonly callers: Set<string>;
  calls: number;
  admitted: number;
  /** From the store's time to that of the bucket; undefined after a loss until the next call. */
  shiftUs: number | undefined;
  atUs: InstantUs;
  trueUs: InstantUs;
}

interface LeasedKey {
  /** Tokens out by slot. */
  readonly out: Map<number, Tokens>;
  /** Of each pod, the lease that ends first in front. */
  readonly held: Map<string, Lease[]>;
  storeUs: InstantUs;
  trueUs: InstantUs;
}

/** Length of the slots that leases end with. */
function slotOf(entry: Float64Array): DurationUs {
  return Math.max(LEASE_SLOT_US, entry[LEASE.tickUs] ?? 1);
}

/** One key's part of a call and of its reply; both begin where the arrays do. */
export interface CallEntry {
  /** Limit and key. */
  readonly name: string;
  readonly entry: Float64Array;
  readonly answer: Float64Array;
}

export function* entriesOf(call: StoreCall, reply: StoreCallReply): Generator<CallEntry> {
  let [at, replyAt] = [0, 0];
  for (let i = 0; i < call.keys.length; i += 1) {
    const name = `${call.limits[i]?.name ?? ""} ${call.keys[i] ?? ""}`;
    const entry = call.entries.subarray(at);
    yield { name, entry, answer: reply.entries.subarray(replyAt) };
    if (call.kind === "take") {
      const runs = entry[TAKE.runs] ?? 0;
      at += TAKE_FIELDS + runs * RUN_FIELDS;
      replyAt += TAKE_REPLY_FIELDS + runs;
    } else {
      at += LEASE_FIELDS + (entry[LEASE.reports] ?? 0) * LEASE_REPORT_FIELDS;
      replyAt += LEASE_REPLY_FIELDS;
    }
  }
}

export class CallLaws {
  readonly #violated: (law: string, text: string) => void;
  readonly #nowUs: () => InstantUs;
  readonly #decided: Set<string> = new Set();
  readonly #exact: Map<string, ExactKey> = new Map();
  readonly #leased: Map<string, LeasedKey> = new Map();
  /** Admissions out of leases are judged from here on, in true time. */
  #judgesFromUs: InstantUs = 0;

  /** @param nowUs - True time. */
  constructor(violated: (law: string, text: string) => void, nowUs: () => InstantUs) {
    this.#violated = violated;
    this.#nowUs = nowUs;
  }

  /** The store lost state: its time may be another, and what it had handed out it may not know. */
  storeForgot(): void {
    this.unclearFor(0);
    this.#leased.clear();
    for (const key of this.#exact.values()) key.shiftUs = undefined;
  }

  /** Which leases a pod still holds cannot be told from outside for so long, and until all end. */
  unclearFor(us: DurationUs): void {
    this.#judgesFromUs = Math.max(this.#judgesFromUs, this.#nowUs() + us + LEASES_END_US);
  }

  /** @param holder - Pod and incarnation. */
  called(holder: string, call: StoreCall, reply: StoreCallReply): void {
    const id = `${holder}.${call.id}`;
    if (this.#decided.has(id)) this.#violated("I5", `call ${id} was decided more than once`);
    this.#decided.add(id);
    for (const { name, entry, answer } of entriesOf(call, reply)) {
      if (call.kind === "take") this.#take(holder, name, reply.nowUs, entry, answer);
      else this.#lease(holder, name, reply.nowUs, entry, answer);
    }
  }

  /** A pod admitted tokens of a leased limit, with the store in reach. */
  admitted(holder: string, name: string, cost: Tokens): void {
    const nowUs = this.#nowUs();
    const key = this.#leased.get(name);
    const held = key?.held.get(holder) ?? [];
    const storeUs = key === undefined ? 0 : key.storeUs + (nowUs - key.trueUs);
    let left = cost;
    while (held[0] !== undefined && left > 0) {
      const used = held[0].endsUs <= storeUs ? 0 : Math.min(left, held[0].tokens);
      held[0].tokens -= used;
      left -= used;
      if (held[0].endsUs <= storeUs || held[0].tokens === 0) held.shift();
    }
    if (left === 0 || nowUs < this.#judgesFromUs) return;
    this.#violated("I2", `${name}: pod ${holder} admitted ${left} tokens that it has no lease of`);
  }

  #take(
    holder: string,
    name: string,
    storeUs: InstantUs,
    entry: Float64Array,
    answer: Float64Array,
  ): void {
    this.#fits(name, storeUs, entry, answer[TAKE_REPLY.level] ?? 0);
    const key = this.#exactKey(name, entry, storeUs);
    if (key === undefined) return;
    const runs = entry[TAKE.runs] ?? 0;
    key.callers.add(holder);
    if (runs > 0) key.calls += 1;
    key.takes.giveBack(holder, key.atUs, storeUs, entry);
    let tokens = 0;
    for (let r = 0; r < runs; r += 1) {
      const admitted = answer[TAKE_REPLY_FIELDS + r] ?? 0;
      key.admitted += admitted;
      tokens += admitted * (entry[TAKE_FIELDS + r * RUN_FIELDS] ?? 0);
    }
    const debt = key.takes.take({ holder, storeUs, atUs: key.atUs, tokens });
    if (debt > ROUNDING) {
      this.#violated("order", `${name}: ${debt.toFixed(3)} tokens beyond b + r T in the store`);
    }
    this.#pace(name, key, entry);
  }

  #pace(name: string, key: ExactKey, entry: Float64Array): void {
    const pods = key.callers.size;
    const perTick =
      (entry[TAKE.refill] ?? 0) / ((entry[TAKE.period] ?? 1) * (entry[TAKE.tickUs] ?? 1));
    const idle = Math.max(2e6 * perTick, IDLE_CALLS_MIN, pods / 2);
    const seconds = (this.#nowUs() - key.sinceUs) / 1e6;
    const allowed = key.admitted + idle * seconds + pods * (1 + IN_FLIGHT_PER_POD);
    if (key.calls <= allowed) return;
    this.#violated("I6", `${name}: ${key.calls} calls, ${allowed.toFixed(0)} allowed`);
  }

  /** The key's bucket, brought to the store's time; undefined when the limit was changed. */
  #exactKey(name: string, entry: Float64Array, storeUs: InstantUs): ExactKey | undefined {
    const nowUs = this.#nowUs();
    const [refill, period, tickUs, burst] = [...entry.subarray(TAKE.refill, TAKE.burst + 1)];
    const terms = { refill: refill ?? 0, period: period ?? 1, tickUs: tickUs ?? 1 };
    const shape = `${refill} ${period} ${tickUs} ${burst}`;
    let key = this.#exact.get(name);
    if (key === undefined) {
      const takes = new TakeMeter({ ...terms, burst: burst ?? 0, maxDebt: 0 }, storeUs);
      const counts = { callers: new Set<string>(), calls: 0, admitted: 0, shiftUs: 0 };
      key = { shape, takes, sinceUs: nowUs, ...counts, atUs: storeUs, trueUs: nowUs };
      this.#exact.set(name, key);
    }
    key.shiftUs ??= key.atUs + (nowUs - key.trueUs) - storeUs;
    key.atUs = storeUs + key.shiftUs;
    key.trueUs = nowUs;
    return key.shape === shape ? key : undefined;
  }

  #lease(
    holder: string,
    name: string,
    storeUs: InstantUs,
    entry: Float64Array,
    answer: Float64Array,
  ): void {
    const key = this.#leasedKey(name);
    const slotUs = slotOf(entry);
    key.storeUs = storeUs;
    key.trueUs = this.#nowUs();
    this.#settle(key, holder, slotUs, entry);
    const granted = answer[LEASE_REPLY.granted] ?? 0;
    const slot = answer[LEASE_REPLY.slot] ?? 0;
    if (granted > 0) {
      key.out.set(slot, (key.out.get(slot) ?? 0) + granted);
      const held = key.held.get(holder) ?? [];
      held.push({ endsUs: slot * slotUs, tokens: granted });
      held.sort((a, b) => a.endsUs - b.endsUs);
      key.held.set(holder, held);
    }
    this.#fits(name, storeUs, entry, answer[LEASE_REPLY.level] ?? 0);
  }

  /** @param level - Tokens left after the call. */
  #fits(name: string, storeUs: InstantUs, entry: Float64Array, level: Tokens): void {
    const key = this.#leased.get(name);
    if (key === undefined) return;
    let out = 0;
    for (const [slot, tokens] of key.out) {
      if (slot * slotOf(entry) <= storeUs) key.out.delete(slot);
      else out += tokens;
    }
    const burst = entry[LEASE.burst] ?? 0;
    if (out === 0 || level + out <= burst + ROUNDING) return;
    const figures = `${out} tokens are out in leases and ${level.toFixed(1)} left, of ${burst}`;
    this.#violated("I2", `${name}: ${figures}`);
  }

  /** Takes what a pod tells of its leases out of what is out, and of what it holds. */
  #settle(key: LeasedKey, holder: string, slotUs: DurationUs, entry: Float64Array): void {
    for (let r = 0; r < (entry[LEASE.reports] ?? 0); r += 1) {
      const at = LEASE_FIELDS + r * LEASE_REPORT_FIELDS;
      const [slot = 0, spent = 0, returned = 0] = entry.subarray(at, at + LEASE_REPORT_FIELDS);
      const out = key.out.get(slot);
      if (out !== undefined) key.out.set(slot, Math.max(0, out - spent - returned));
      let back = returned;
      for (const lease of key.held.get(holder) ?? []) {
        if (lease.endsUs !== slot * slotUs) continue;
        const taken = Math.min(back, lease.tokens);
        lease.tokens -= taken;
        back -= taken;
      }
    }
  }

  #leasedKey(name: string): LeasedKey {
    let key = this.#leased.get(name);
    if (key === undefined) {
      key = { out: new Map(), held: new Map(), storeUs: 0, trueUs: 0 };
      this.#leased.set(name, key);
    }
    return key;
  }
}
