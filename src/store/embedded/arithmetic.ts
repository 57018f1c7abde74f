/**
 * Arithmetic that gives the same bits in JavaScript and in Lua: the embedded store and the scripts
 * in `lua/` compute one rule, and a test demands equal bytes. Twin of `lua/lib/numbers.lua`.
 */

/** The smaller one, as Lua's math.min says it: the first of equals, so -0 and 0 are kept apart. */
export function min(a: number, b: number): number {
  // biome-ignore lint/complexity/useMathMinMax: Math.min treats NaN and -0 differently from Lua.
  return b < a ? b : a;
}

/** The larger one, as Lua's math.max says it. */
export function max(a: number, b: number): number {
  // biome-ignore lint/complexity/useMathMinMax: Math.max treats NaN and -0 differently from Lua.
  return b > a ? b : a;
}

/**
 * exp(-x) for x >= 0, 1 for anything below, 0 from 50 on. `Math.exp` differs from C's in the last
 * bit for one argument in twenty; this uses only + - * /.
 */
export function expn(x: number): number {
  if (!(x > 0)) return 1;
  if (x >= 50) return 0;
  const y = x / 1024;
  let p = 1 - y * (1 - (y / 2) * (1 - (y / 3) * (1 - (y / 4) * (1 - y / 5))));
  for (let i = 0; i < 10; i += 1) p = p * p;
  return p;
}

/** Whole numbers below this are exact in a double; nothing stored may reach it. */
export const SAFE: number = 2 ** 53;

/** A number that can have been stored: no NaN, no infinity, exact if whole. */
export function isStorable(x: number): boolean {
  return x > -SAFE && x < SAFE;
}
