/**
 * The state of one limit and key, for all modes. Twin of `lua/lib/key-state.lua`, which explains
 * the value and the rules; the order of operations is the same, so that the bytes are.
 *
 * One object is loaded, advanced, changed and stored again for each key of a batch; what is kept
 * per key is only the array of its doubles.
 */
import { FAULT } from "../../core/exchange.ts";
import type { DurationUs, InstantUs, Tokens } from "../../core/units.ts";
import { expn, max, min, SAFE } from "./arithmetic.ts";
import { type KeyTerms, type Losses, strictFrom } from "./key-terms.ts";

/** Doubles per key; one more while it is kept for longer than until it is full. */
export const KEY_FIELDS = 19;
const KEPT_MAX_US = 9e15;

/** A key further ahead of the clock was written under a lane record that is gone. */
const REGRESS_MAX_US = 2_000_000;
/** Kept beyond its last use, as the scripts do for a step of the server's own clock. */
const EXPIRY_MARGIN_MS = 60_000;
const EXPIRY_MAX_MS = 1e15;

export class KeyState {
  // The names are those of the specification and of the scripts.
  L = 0;
  P = 0;
  b = 0;
  D = 0;
  t = 0;
  E = 0;
  C = 0;
  A = 0;
  O = 0;
  Op = 0;
  tS = 0;
  S = 0;
  q = 0;
  o0 = 0;
  o1 = 0;
  o2 = 0;
  w0 = 0;
  w1 = 0;
  z = 0;
  K = 0;

  /**
   * Loads a stored value, undefined for absent.
   *
   * @param fullAt - Before it the bucket cannot be full, as the calling pod knows; 0 for unknown.
   * @returns What was wrong with it, one of `FAULT`; it is replaced then.
   */
  open(
    stored: Float64Array | undefined,
    now: InstantUs,
    losses: Losses,
    terms: KeyTerms,
    fullAt: InstantUs,
  ): number {
    const isStrict = !(terms.lost > 0);
    const lostAt = isStrict ? max(losses.lostAt, losses.movedAt) : losses.lostAt;
    if (stored !== undefined) {
      if (!this.read(stored)) {
        this.renew(now, now, terms);
        losses.changedAt = now;
        return FAULT.damaged;
      }
      const isChanged = this.convert(terms);
      if (now <= this.t + this.lifeUs(terms)) {
        if (isChanged) losses.changedAt = now;
        if (isStrict && lostAt > 0) this.distrust(strictFrom(lostAt, terms), terms);
        return FAULT.none;
      }
    }
    if (now < fullAt) {
      this.renew(now, now, terms);
      losses.changedAt = now;
      return FAULT.lost;
    }
    this.renew(now, lostAt, terms);
    return FAULT.none;
  }

  /** Pods were told, or are, that so much is lacking (times P). */
  keepTold(lacking: number, terms: KeyTerms): void {
    this.K = min(max(this.K, this.fullWith(lacking, terms)), KEPT_MAX_US);
  }

  /** Tokens out in leases. */
  get leased(): Tokens {
    return this.o0 + this.o1 + this.o2;
  }

  /** Brings the state to `now`, piece by piece over the ends of lease slots. */
  advance(now: InstantUs, terms: KeyTerms): void {
    const before = this.t;
    if (now < before) {
      if (before - now > REGRESS_MAX_US) this.regress(now, terms);
    } else {
      const at = max(before, Math.floor(now / terms.tickUs) * terms.tickUs);
      if (this.leased > 0) this.endLeases(before, at, terms);
      this.refill(at, terms);
      this.t = at;
      this.rotateTakes(before, terms);
      const seconds = (at - before) / 1e6;
      if (seconds > 0) this.fade(expn(seconds / terms.tau));
    }
    this.rotateLedger(terms);
  }

  /** Doubles that the state is stored in. */
  fields(terms: KeyTerms): number {
    return this.K > this.fullWith(this.D, terms) ? KEY_FIELDS + 1 : KEY_FIELDS;
  }

  /** Writes the state over a stored value of the right length. */
  write(stored: Float64Array): void {
    if (this.E < 1e-9) this.E = 0;
    if (this.C < 1e-9) this.C = 0;
    if (this.A < 1e-9) this.A = 0;
    stored[0] = this.L;
    stored[1] = this.P;
    stored[2] = this.b;
    stored[3] = this.D;
    stored[4] = this.t;
    stored[5] = this.E;
    stored[6] = this.C;
    stored[7] = this.A;
    stored[8] = this.O;
    stored[9] = this.Op;
    stored[10] = this.tS;
    stored[11] = this.S;
    stored[12] = this.q;
    stored[13] = this.o0;
    stored[14] = this.o1;
    stored[15] = this.o2;
    stored[16] = this.w0;
    stored[17] = this.w1;
    stored[18] = this.z;
    if (stored.length > KEY_FIELDS) stored[KEY_FIELDS] = this.K;
  }

  /** How long the value is kept from now on. */
  expiryUs(terms: KeyTerms): DurationUs {
    const ms = Math.ceil(this.lifeUs(terms) / 1000) + EXPIRY_MARGIN_MS;
    return min(ms, EXPIRY_MAX_MS) * 1000;
  }

  private read(stored: Float64Array): boolean {
    if (stored.length !== KEY_FIELDS && stored.length !== KEY_FIELDS + 1) return false;
    for (const x of stored) if (!(x >= 0 && x < SAFE)) return false;
    this.L = stored[0] ?? 0;
    this.P = stored[1] ?? 0;
    this.b = stored[2] ?? 0;
    this.D = stored[3] ?? 0;
    this.t = stored[4] ?? 0;
    this.E = stored[5] ?? 0;
    this.C = stored[6] ?? 0;
    this.A = stored[7] ?? 0;
    this.O = stored[8] ?? 0;
    this.Op = stored[9] ?? 0;
    this.tS = stored[10] ?? 0;
    this.S = stored[11] ?? 0;
    this.q = stored[12] ?? 0;
    this.o0 = stored[13] ?? 0;
    this.o1 = stored[14] ?? 0;
    this.o2 = stored[15] ?? 0;
    this.w0 = stored[16] ?? 0;
    this.w1 = stored[17] ?? 0;
    this.z = stored[18] ?? 0;
    this.K = stored[KEY_FIELDS] ?? 0;
    return this.L > 0 && this.P > 0 && this.b > 0 && this.S > 0;
  }

  /** When the bucket is full, or was, if it lacks so much (times P). */
  private fullWith(lacking: number, { tickUs }: KeyTerms): InstantUs {
    return this.t + Math.ceil(lacking / this.L) * tickUs;
  }

  private lifeUs(terms: KeyTerms): DurationUs {
    let full = max(this.fullWith(this.D, terms), this.K) - this.t;
    if (this.leased > 0) full = max(full, 3 * terms.leaseSlotUs);
    return full + Math.ceil(max(10 * terms.tau, 10) * 1e6);
  }

  private convert(terms: KeyTerms): boolean {
    const { refill, period, burst } = terms;
    const isSame = this.L === refill && this.P === period && this.b === burst;
    if (isSame || terms.tickUs === 1) this.keepTold(this.D, terms);
    if (isSame) return false;
    this.w0 = this.w1 = this.z = 0;
    let level = this.b - this.D / this.P;
    level = level > 0 ? level * (burst / this.b) : max(level, -terms.maxDebt);
    [this.L, this.P, this.b] = [refill, period, burst];
    this.D = max(0, Math.ceil((this.b - level) * this.P));
    this.D = max(this.D, min(this.leased, this.b) * this.P);
    return true;
  }

  /** Starts anew; `lostAt` above 0 tells since when keys may be missing. */
  private renew(now: InstantUs, lostAt: InstantUs, terms: KeyTerms): void {
    const at = Math.floor(now / terms.tickUs) * terms.tickUs;
    this.L = terms.refill;
    this.P = terms.period;
    this.b = terms.burst;
    this.t = at;
    this.tS = at;
    this.S = terms.ledgerSlotUs;
    this.D = this.E = this.C = this.A = this.O = this.Op = this.q = 0;
    this.o0 = this.o1 = this.o2 = this.w0 = this.w1 = this.z = this.K = 0;
    if (lostAt === 0) return;
    if (terms.lost > 0) {
      const start = max(1, terms.lost * this.b);
      const level = min(this.b, start + terms.rate * (max(0, now - lostAt) / 1e6));
      this.D = Math.ceil((this.b - level) * this.P);
    } else {
      const from = strictFrom(lostAt, terms);
      this.t = max(at, from);
      this.tS = this.t;
      this.D = max(0, this.b * this.P - this.L * ((this.t - from) / terms.tickUs));
    }
  }

  /** Written before a loss, the value may lack what was granted last. */
  private distrust(from: InstantUs, terms: KeyTerms): void {
    if (this.t >= from) return;
    this.advance(from, terms);
    this.D = max(this.D, this.b * this.P);
  }

  private regress(now: InstantUs, terms: KeyTerms): void {
    this.o2 = this.o1 + this.o2;
    this.o1 = this.o0;
    this.o0 = 0;
    this.q = min(this.q, now + REGRESS_MAX_US);
    this.K = 0;
    this.t = Math.floor(now / terms.tickUs) * terms.tickUs;
  }

  private endLeases(before: InstantUs, at: InstantUs, terms: KeyTerms): void {
    let slotEnd = (Math.floor(before / terms.leaseSlotUs) + 1) * terms.leaseSlotUs;
    for (let i = 0; i < 3 && slotEnd <= at; i += 1) {
      this.refill(slotEnd, terms);
      this.o0 = this.o1;
      this.o1 = this.o2;
      this.o2 = 0;
      slotEnd += terms.leaseSlotUs;
    }
  }

  private refill(to: InstantUs, terms: KeyTerms): void {
    const ticks = Math.floor((to - this.t) / terms.tickUs);
    const leased = this.leased * this.P;
    const young = (this.w0 + this.w1) * this.P;
    if (this.D <= leased) {
      if (young > 0) this.z = to;
      this.t = to;
      return;
    }
    const gain = Math.floor(this.L * (1 - terms.hold) * ticks);
    if (young > 0 && this.D - gain - leased < young) this.z = to;
    if (gain >= this.D - leased) {
      this.D = leased;
      this.t = to;
    } else {
      this.D = this.D - gain;
      this.t = this.t + ticks * terms.tickUs;
    }
  }

  private rotateTakes(before: InstantUs, { takeSlotUs }: KeyTerms): void {
    if (this.w0 + this.w1 === 0) return;
    const passed = Math.floor(this.t / takeSlotUs) - Math.floor(before / takeSlotUs);
    if (passed === 1) {
      this.w0 = this.w1;
      this.w1 = 0;
    } else if (passed > 1) {
      this.w0 = this.w1 = 0;
    }
  }

  private fade(kept: number): void {
    this.E = this.E * kept;
    this.C = this.C * kept;
    this.A = this.A * kept;
  }

  private rotateLedger(terms: KeyTerms): void {
    const age = this.t - this.tS;
    if (age < 0) {
      this.tS = this.t;
    } else if (age >= this.S) {
      const late = age >= 2 * this.S;
      this.Op = late ? 0 : this.O;
      this.O = 0;
      this.tS = late ? this.t : this.tS + this.S;
      if (terms.ledgerSlotUs > this.S || this.Op === 0) this.S = terms.ledgerSlotUs;
    }
  }
}
