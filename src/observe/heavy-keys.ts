/**
 * The keys with the largest counts of a stream that may have any number of them, in a fixed number
 * of places (the space-saving algorithm). A key without a place takes that of the smallest, and its
 * count as well, which is noted as its error: a key's true count lies between count less error and
 * count, and a key with more than the total divided by the places always has one.
 *
 * Counts decay, so that what is large is large now.
 */

/** A key of a limit, and what it has counted for certain. */
export interface HeavyKey {
  readonly limit: string;
  readonly key: string;
  readonly count: number;
}

export class HeavyKeys {
  readonly #limits: string[] = [];
  /** As made by `nameOf`: a caller's key may be a part of a long body, which it would keep. */
  readonly #names: string[] = [];
  readonly #counts: Float64Array;
  readonly #errors: Float64Array;
  readonly #places = new Map<string, number>();

  /** @param placesMax - Most keys that are counted at once, at least 1. */
  constructor(placesMax: number) {
    this.#counts = new Float64Array(placesMax);
    this.#errors = new Float64Array(placesMax);
  }

  add(limit: string, key: string, amount: number): void {
    const name = nameOf(limit, key);
    let place = this.#places.get(name);
    if (place === undefined) {
      place = this.#names.length < this.#counts.length ? this.#names.length : this.#evict();
      this.#limits[place] = limit;
      this.#names[place] = name;
      this.#places.set(name, place);
    }
    this.#counts[place] = (this.#counts[place] as number) + amount;
  }

  /** Multiplies every count by `factor` and frees the places of what falls below `least`. */
  decay(factor: number, least: number): void {
    for (let place = this.#names.length - 1; place >= 0; place -= 1) {
      this.#counts[place] = (this.#counts[place] as number) * factor;
      this.#errors[place] = (this.#errors[place] as number) * factor;
      if ((this.#counts[place] as number) < least) this.#free(place);
    }
  }

  /** The `most` largest, by what is certain, largest first. */
  top(most: number): HeavyKey[] {
    return this.#names
      .map((name, place) => {
        const limit = this.#limits[place] as string;
        const count = (this.#counts[place] as number) - (this.#errors[place] as number);
        return { limit, key: name.slice(nameOf(limit, "").length), count };
      })
      .filter(({ count }) => count > 0)
      .sort((a, b) => b.count - a.count)
      .slice(0, most);
  }

  /** Makes the place of the smallest count free for another key, which takes over its count. */
  #evict(): number {
    let smallest = 0;
    for (let place = 1; place < this.#names.length; place += 1) {
      const isSmaller = (this.#counts[place] as number) < (this.#counts[smallest] as number);
      if (isSmaller) smallest = place;
    }
    this.#places.delete(this.#names[smallest] as string);
    this.#errors[smallest] = this.#counts[smallest] as number;
    return smallest;
  }

  /** The last key moves into the place, so that places in use lie together. */
  #free(place: number): void {
    this.#places.delete(this.#names[place] as string);
    const last = this.#names.length - 1;
    if (place < last) {
      this.#places.set(this.#names[last] as string, place);
      this.#limits[place] = this.#limits[last] as string;
      this.#names[place] = this.#names[last] as string;
      this.#counts[place] = this.#counts[last] as number;
      this.#errors[place] = this.#errors[last] as number;
    }
    this.#limits.pop();
    this.#names.pop();
    this.#counts[last] = 0;
    this.#errors[last] = 0;
  }
}

/** The length in front says where the one ends, so that no two pairs share a name. */
function nameOf(limit: string, key: string): string {
  return `${limit.length}:${limit}${key}`;
}
