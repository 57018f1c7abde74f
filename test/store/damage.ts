/** Ways in which a stored value can be no value of ours. */
const KINDS = ["text", "list", "short", "nan", "zeros", "negative", "huge", "hash"] as const;
export type Damage = (typeof KINDS)[number];
export const DAMAGES: readonly Damage[] = KINDS;

/** What a damaged value looks like to the embedded store: all of these are unreadable. */
export function numbersOf(damage: Damage, count: number): Float64Array {
  const fill = { nan: Number.NaN, zeros: 0, negative: -1, huge: 1e300 }[damage as "nan"];
  if (fill === undefined) return new Float64Array(damage === "short" ? 3 : 0);
  return new Float64Array(count).fill(fill);
}
