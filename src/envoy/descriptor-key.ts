/**
 * What descriptors are counted under: the values that a rule leaves open, in an encoding that no
 * two lists of values share. Each value has its length in front, so that no value can reach into
 * the next one, whatever characters it holds.
 */
import { hash } from "node:crypto";

/** The key of a rule that leaves nothing open. Encoded values begin with a digit. */
export const SOLE_KEY = "*";

/**
 * Longest key that is kept as it is, in UTF-16 code units. Callers' values can have thousands, and
 * each tracked key stays in memory; a longer one is kept as its SHA-256.
 */
const KEY_LENGTH_MAX = 256;

/** Appends a value to a key in the making, which starts as "". */
export function appendValue(key: string, value: string): string {
  return `${key}${value.length}:${value}`;
}

/** @param values - All appended values; "" when there are none. */
export function finishKey(values: string): string {
  if (values === "") return SOLE_KEY;
  if (values.length <= KEY_LENGTH_MAX) return values;
  return `#${hash("sha256", Buffer.from(values, "utf16le"), "base64url")}`;
}
