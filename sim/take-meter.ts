/**
 * The takes of one key, replayed by a bucket of integers in the store's order. What was given back
 * was never used, so it must be as if it had not been taken: takes are judged a while later, when
 * it can be told which of them were.
 */

import type { BucketShape } from "../src/core/limit.ts";
import { TAKE } from "../src/core/store-call.ts";
import type { DurationUs, InstantUs, Tokens } from "../src/core/units.ts";
import { MeterBucket } from "./meter.ts";

const JUDGED_AFTER_US: DurationUs = 300_000;

/** Tokens of one take, or below 0 of a give-back that came when its take had been judged. */
export interface Debit {
  readonly holder: string;
  readonly storeUs: InstantUs;
  /** The same in the time of the meter, which a loss of the store does not turn back. */
  readonly atUs: InstantUs;
  tokens: Tokens;
}

export class TakeMeter {
  readonly #bucket: MeterBucket;
  /** Not judged yet, oldest first. */
  readonly #debits: Debit[] = [];

  constructor(shape: BucketShape, nowUs: InstantUs) {
    this.#bucket = new MeterBucket(shape, nowUs);
  }

  /** @returns The largest debt among the takes that are judged now. */
  take(debit: Debit): Tokens {
    this.#debits.push(debit);
    let worst = 0;
    for (let first = this.#debits[0]; first !== undefined; first = this.#debits[0]) {
      if (first.atUs > debit.atUs - JUDGED_AFTER_US) break;
      this.#debits.shift();
      this.#bucket.take(first.atUs, first.tokens);
      worst = Math.max(worst, this.#bucket.debt(first.atUs));
    }
    return worst;
  }

  /**
   * Takes what is given back out of the takes that it may be of, the oldest first. If they have
   * been judged, it is worth what has not refilled since.
   */
  giveBack(holder: string, atUs: InstantUs, storeUs: InstantUs, entry: Float64Array): void {
    let left = entry[TAKE.giveBack] ?? 0;
    if (left === 0) return;
    const takenAt = entry[TAKE.takenAt] ?? 0;
    const ageUs = storeUs - takenAt;
    if (ageUs >= JUDGED_AFTER_US) {
      const refilled = (ageUs * (entry[TAKE.refill] ?? 0)) / (entry[TAKE.tickUs] ?? 1);
      left -= refilled / (entry[TAKE.period] ?? 1);
      if (left > 0) this.#debits.push({ holder, storeUs, atUs, tokens: -left });
      return;
    }
    for (const debit of this.#debits) {
      if (debit.holder !== holder || debit.storeUs < takenAt) continue;
      const unused = Math.min(left, Math.max(0, debit.tokens));
      debit.tokens -= unused;
      left -= unused;
    }
  }
}
