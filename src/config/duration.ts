/** Durations as people write them (`100ms`, `1s`, `15m`, `1h`) and microseconds. */
import { type DurationUs, US_PER_MS, US_PER_SECOND } from "../core/units.ts";

/** Units by size, the largest first. */
const UNITS: readonly (readonly [name: string, us: DurationUs])[] = [
  ["d", 86_400 * US_PER_SECOND],
  ["h", 3_600 * US_PER_SECOND],
  ["m", 60 * US_PER_SECOND],
  ["s", US_PER_SECOND],
  ["ms", US_PER_MS],
];

export const DURATION_PATTERN: RegExp = /^[0-9]{1,12}(?:ms|s|m|h)$/;

/** Length of one unit, `ms`, `s`, `m`, `h` or `d`, in microseconds; undefined for another name. */
export function unitUs(name: string): DurationUs | undefined {
  return UNITS.find(([unit]) => unit === name)?.[1];
}

/** @returns Microseconds, or undefined when the text is no whole number with a unit. */
export function parseDuration(text: string): DurationUs | undefined {
  if (!DURATION_PATTERN.test(text)) return undefined;
  const digits = Number.parseInt(text, 10);
  const unit = unitUs(text.slice(String(text.match(/^[0-9]+/)?.[0]).length));
  const us = unit === undefined ? Number.NaN : digits * unit;
  return Number.isSafeInteger(us) ? us : undefined;
}

/** The shortest text that `parseDuration` reads back; microseconds where no unit fits. */
export function formatDuration(us: DurationUs): string {
  if (us === 0) return "0s";
  for (const [name, unit] of UNITS) {
    if (name !== "d" && us % unit === 0) return `${us / unit}${name}`;
  }
  return `${us}us`;
}
