/**
 * Excess as processes can be measured from outside.
 *
 * The virtual bucket replays the admissions at the instants of their answers; its largest debt
 * covers intervals of every length at once. But an answer comes a little after its decision, and
 * not always equally late: a generator that slept for 5 ms reads the answers of 5 ms at one
 * instant, and an ideal bucket would seem to have a debt. So there is a second figure, the excess
 * that is *certain*: an admission was decided somewhere between its sending and its answer, and
 * only what no choice of instants can explain away is counted.
 */
import { MeterBucket } from "../sim/meter.ts";
import type { BucketShape } from "../src/core/limit.ts";
import { type InstantUs, type Tokens, US_PER_SECOND } from "../src/core/units.ts";

/** One token that was admitted, at some instant from `sentUs` to `answeredUs`. */
export interface Admission {
  readonly sentUs: InstantUs;
  readonly answeredUs: InstantUs;
}

export interface Excess {
  /** Largest debt of the virtual bucket, tokens; 0 when the limit was never passed. */
  readonly tokens: Tokens;
  /** When, on the clock of the admissions. */
  readonly atUs: InstantUs;
}

/** Replays tokens admitted at these instants, in ascending order. */
export function replayedExcess(shape: BucketShape, instantsUs: Float64Array): Excess {
  const bucket = new MeterBucket(shape, instantsUs[0] ?? 0);
  let [tokens, atUs] = [0, 0];
  for (const instantUs of instantsUs) {
    bucket.take(instantUs, 1);
    const debt = bucket.debt(instantUs);
    if (debt > tokens) [tokens, atUs] = [debt, instantUs];
  }
  return { tokens, atUs };
}

/** Tokens that one ideal bucket admits of arrivals at these instants, in ascending order. */
export function idealAdmissions(shape: BucketShape, instantsUs: Float64Array): Tokens {
  const bucket = new MeterBucket(shape, instantsUs[0] ?? 0);
  let admitted = 0;
  for (const instantUs of instantsUs) {
    if (!bucket.holds(instantUs, 1)) continue;
    bucket.take(instantUs, 1);
    admitted += 1;
  }
  return admitted;
}

/**
 * The largest excess over all intervals [s, e], counting only admissions that were sent at s or
 * later and answered at e or earlier.
 *
 * For each e, in ascending order, the tree holds for every s up to e the tokens certainly
 * admitted since, plus rate times s; its maximum less rate times e less the burst is the excess
 * that ends at e.
 */
export function certainExcess(shape: BucketShape, admissions: readonly Admission[]): Excess {
  if (admissions.length === 0) return { tokens: 0, atUs: 0 };
  const perUs = shape.refill / (shape.period * shape.tickUs);
  const startsUs = Float64Array.from(admissions, ({ sentUs }) => sentUs).sort();
  const originUs = startsUs[0] as number;
  const tree = new PrefixTree(startsUs.length);
  let begun = 0;
  let [tokens, atUs] = [0, 0];
  const byAnswer = [...admissions].sort((a, b) => a.answeredUs - b.answeredUs);
  for (const { sentUs, answeredUs } of byAnswer) {
    for (; begun < startsUs.length && (startsUs[begun] as number) <= answeredUs; begun += 1) {
      tree.set(begun, perUs * ((startsUs[begun] as number) - originUs));
    }
    tree.addUpTo(lastIndexOf(startsUs, sentUs), 1);
    const excess = tree.maximum - perUs * (answeredUs - originUs) - shape.burst;
    if (excess > tokens) [tokens, atUs] = [excess, answeredUs];
  }
  return { tokens, atUs };
}

/** Tokens per second of a shape. */
export function rateOf(shape: BucketShape): number {
  return (shape.refill / (shape.period * shape.tickUs)) * US_PER_SECOND;
}

/** Index of the last element that is not above `value`; the array ascends and holds the value. */
function lastIndexOf(ascending: Float64Array, value: number): number {
  let [low, high] = [0, ascending.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ascending[middle] as number) <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** Values at fixed places, of which a prefix can be raised and the maximum be read, in log time. */
class PrefixTree {
  readonly #leaves: number;
  /** Maximum below each node, less what its ancestors have added. */
  readonly #maxima: Float64Array;
  readonly #added: Float64Array;

  /** All places begin at minus infinity. */
  constructor(places: number) {
    let leaves = 1;
    while (leaves < places) leaves *= 2;
    this.#leaves = leaves;
    this.#maxima = new Float64Array(2 * leaves).fill(Number.NEGATIVE_INFINITY);
    this.#added = new Float64Array(2 * leaves);
  }

  get maximum(): number {
    return this.#maxima[1] as number;
  }

  /** Sets a place behind every prefix that was ever raised. */
  set(place: number, value: number): void {
    let node = this.#leaves + place;
    this.#maxima[node] = value;
    while (node > 1) {
      node = node >>> 1;
      this.#pull(node);
    }
  }

  /** Adds to the values at all places from 0 to `last`. */
  addUpTo(last: number, value: number): void {
    // Up from the leaf behind the prefix: every left sibling on the way lies wholly inside.
    let node = this.#leaves + last;
    this.#raise(node, value);
    while (node > 1) {
      if (node % 2 === 1) this.#raise(node - 1, value);
      node = node >>> 1;
      this.#pull(node);
    }
  }

  #raise(node: number, value: number): void {
    this.#maxima[node] = (this.#maxima[node] as number) + value;
    this.#added[node] = (this.#added[node] as number) + value;
  }

  #pull(node: number): void {
    const left = this.#maxima[2 * node] as number;
    const right = this.#maxima[2 * node + 1] as number;
    this.#maxima[node] = Math.max(left, right) + (this.#added[node] as number);
  }
}
