/** How columns of typed arrays grow with the rows that they tell of. */

/** Small tables double; large ones grow by a half, because what is not used yet is memory too. */
export function grown(rows: number, most: number): number {
  return Math.min(most, rows < 16_384 ? rows * 2 : Math.ceil(rows * 1.5));
}

/** Copies a column into the longer one that takes its place. */
export function copyInto<
  T extends Float64Array | Uint32Array | Int32Array | Uint16Array | Uint8Array,
>(to: T, from: T): T {
  to.set(from);
  return to;
}
