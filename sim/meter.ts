/**
 * The measuring instruments of one key, fed while a run goes on.
 *
 * Two buckets with the limit's rate and burst: the *virtual* one replays what was admitted and may
 * go into debt, so that its largest debt is the largest over-admission over all spans at once; the
 * *ideal* one decides the arrivals by itself, which is what a perfect central limiter would admit.
 * Both count in whole numbers: tokens times (period x tick), against microseconds.
 */
import type { BucketShape } from "../src/core/limit.ts";
import type { DurationUs, InstantUs, Tokens } from "../src/core/units.ts";
import { SPANS_SECONDS } from "./run-result.ts";

/** A bucket of integers that may go into debt without end. */
export class MeterBucket {
  #refillPerUs: number;
  #scale: number;
  #burst: Tokens;
  #deficit = 0;
  #atUs: InstantUs;
  /** Integral of the debt over time, token-microseconds. */
  debtArea = 0;

  constructor(shape: BucketShape, nowUs: InstantUs) {
    this.#refillPerUs = shape.refill;
    this.#scale = shape.period * shape.tickUs;
    this.#burst = shape.burst;
    this.#atUs = nowUs;
  }

  /** Tokens below empty, 0 while there is anything left. */
  debt(nowUs: InstantUs): Tokens {
    this.#advance(nowUs);
    return Math.max(0, this.#deficit / this.#scale - this.#burst);
  }

  holds(nowUs: InstantUs, cost: Tokens): boolean {
    this.#advance(nowUs);
    return this.#deficit + cost * this.#scale <= this.#burst * this.#scale;
  }

  take(nowUs: InstantUs, cost: Tokens): void {
    this.#advance(nowUs);
    this.#deficit = Math.max(0, this.#deficit + cost * this.#scale);
  }

  /** Other numbers hold from now on; a level above empty is scaled, a debt stays. */
  reshape(nowUs: InstantUs, shape: BucketShape): void {
    this.#advance(nowUs);
    const level = this.#burst - this.#deficit / this.#scale;
    const kept = level > 0 ? (level * shape.burst) / this.#burst : level;
    this.#refillPerUs = shape.refill;
    this.#scale = shape.period * shape.tickUs;
    this.#burst = shape.burst;
    this.#deficit = Math.max(0, Math.round((shape.burst - kept) * this.#scale));
  }

  #advance(nowUs: InstantUs): void {
    const passedUs = nowUs - this.#atUs;
    if (passedUs <= 0) return;
    this.#atUs = nowUs;
    const refilled = passedUs * this.#refillPerUs;
    const owed = this.#deficit - this.#burst * this.#scale;
    if (owed > 0) {
      // The debt falls in a straight line, to zero if the time is long enough.
      const paidUs = Math.min(passedUs, owed / this.#refillPerUs);
      this.debtArea += ((owed - (paidUs * this.#refillPerUs) / 2) / this.#scale) * paidUs;
    }
    this.#deficit = Math.max(0, this.#deficit - refilled);
  }
}

/** Admissions of one key, for the largest sum within spans of given lengths. */
class SpanMaxima {
  readonly #atUs: InstantUs[] = [];
  readonly #sums: number[] = [0];
  readonly #tails: number[] = SPANS_SECONDS.map(() => 0);
  readonly maxima: number[] = SPANS_SECONDS.map(() => 0);

  add(nowUs: InstantUs, tokens: Tokens): void {
    this.#atUs.push(nowUs);
    const total = (this.#sums[this.#sums.length - 1] as number) + tokens;
    this.#sums.push(total);
    for (let i = 0; i < SPANS_SECONDS.length; i += 1) {
      const startUs = nowUs - (SPANS_SECONDS[i] as number) * 1_000_000;
      let tail = this.#tails[i] as number;
      while ((this.#atUs[tail] as number) <= startUs) tail += 1;
      this.#tails[i] = tail;
      const sum = total - (this.#sums[tail] as number);
      if (sum > (this.maxima[i] as number)) this.maxima[i] = sum;
    }
  }
}

export class KeyMeter {
  readonly virtual: MeterBucket;
  readonly ideal: MeterBucket;
  excess: Tokens = 0;
  excessAtUs: InstantUs = 0;
  readonly #spans: SpanMaxima = new SpanMaxima();

  constructor(shape: BucketShape, nowUs: InstantUs) {
    this.virtual = new MeterBucket(shape, nowUs);
    this.ideal = new MeterBucket(shape, nowUs);
  }

  /** @returns The debt after this admission. */
  admitted(nowUs: InstantUs, tokens: Tokens): Tokens {
    if (tokens === 0) return 0;
    this.virtual.take(nowUs, tokens);
    this.#spans.add(nowUs, tokens);
    const debt = this.virtual.debt(nowUs);
    if (debt > this.excess) {
      this.excess = debt;
      this.excessAtUs = nowUs;
    }
    return debt;
  }

  /** Largest admissions within each of `SPANS_SECONDS`. */
  get spanMaxima(): readonly number[] {
    return this.#spans.maxima;
  }

  debtMean(nowUs: InstantUs, durationUs: DurationUs): Tokens {
    this.virtual.debt(nowUs);
    return this.virtual.debtArea / durationUs;
  }
}
