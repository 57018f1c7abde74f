/**
 * Seeded chance: xoshiro128** by Blackman and Vigna (prng.di.unimi.it, public domain), seeded by
 * splitmix32.
 *
 * Streams are forked by a purpose name, not drawn from one another: adding a draw to the network
 * leaves the workload of the same seed as it was, so that two variants of a run stay comparable.
 */
import type { Random } from "../src/ports/random.ts";

export class Prng implements Random {
  readonly #seed: number;
  #a: number;
  #b: number;
  #c: number;
  #d: number;

  /** @param seed - Any number; its lower 32 bits count. */
  constructor(seed: number) {
    this.#seed = seed >>> 0;
    const next = splitMix(this.#seed);
    this.#a = next();
    this.#b = next();
    this.#c = next();
    this.#d = next() | 1; // A state of all zeros would stay there for ever.
  }

  /** A stream of its own for one purpose; depends on the seed and the name alone. */
  fork(purpose: string): Prng {
    let hash = 0x811c9dc5 ^ this.#seed;
    for (let i = 0; i < purpose.length; i += 1) {
      hash = Math.imul(hash ^ purpose.charCodeAt(i), 0x01000193);
      hash ^= hash >>> 15;
    }
    return new Prng(hash);
  }

  /** Uniform in [0, 2^32). */
  word(): number {
    const product = Math.imul(this.#b, 5);
    const result = Math.imul((product << 7) | (product >>> 25), 9) >>> 0;
    const shifted = this.#b << 9;
    this.#c ^= this.#a;
    this.#d ^= this.#b;
    this.#b ^= this.#c;
    this.#a ^= this.#d;
    this.#c ^= shifted;
    this.#d = (this.#d << 11) | (this.#d >>> 21);
    return result;
  }

  /** Uniform in [0, 1), 53 bits. */
  draw(): number {
    return ((this.word() >>> 5) * 0x4000000 + (this.word() >>> 6)) / 0x20000000000000;
  }

  /** A whole number, uniform in [0, bound). */
  below(bound: number): number {
    return Math.floor(this.draw() * bound);
  }

  /** Uniform in [low, high). */
  between(low: number, high: number): number {
    return low + (high - low) * this.draw();
  }

  /** True with the given probability; draws nothing for 0, so that a faultless link is free. */
  chance(probability: number): boolean {
    return probability > 0 && this.draw() < probability;
  }

  /** Exponential with the given mean. */
  exponential(mean: number): number {
    return mean > 0 ? -mean * Math.log(1 - this.draw()) : 0;
  }
}

function splitMix(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
    return mixed ^ (mixed >>> 16);
  };
}
