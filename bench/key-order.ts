/** Which keys a benchmark asks for, in an order that is the same in every run. */

/**
 * `even`: all keys alike, at random. `hot`: 9 of 10 checks go to the first hundredth of the keys.
 * `cold`: every check brings a key that was never seen.
 */
export type KeyAccess = "even" | "hot" | "cold";

/** Long enough that no cache learns the order. */
const LENGTH = 1 << 20;
const HOT_CHECKS = 0.9;
const HOT_KEYS = 0.01;

/**
 * @param draw - A number uniform in [0, 1) at each call; all are drawn at once.
 * @returns The number of the next key, at each call.
 */
export function keyOrder(access: KeyAccess, keys: number, draw: () => number): () => number {
  if (access === "cold") {
    let next = keys;
    return () => next++;
  }
  const hotKeys = Math.ceil(keys * HOT_KEYS);
  const one = (): number => {
    const isHot = access === "hot" && draw() < HOT_CHECKS;
    return Math.floor(draw() * (isHot ? hotKeys : keys));
  };
  const order = Uint32Array.from({ length: LENGTH }, one);
  let at = 0;
  return () => {
    const key = order[at] as number;
    at = (at + 1) & (LENGTH - 1);
    return key;
  };
}
