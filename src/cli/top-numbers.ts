/** Numbers for people, in few columns. */

/** Made when it is first used: it brings 4 MB of language data into memory, also of a sidecar. */
let compact: Intl.NumberFormat | undefined;

/** Three digits or so; whole from 100 on, compact from 100,000 on. */
export function countText(value: number): string {
  if (value >= 100_000) {
    compact ??= new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
    return compact.format(value);
  }
  const digits = Number.isInteger(value) || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return value.toFixed(digits);
}

/** In the unit in which it is at least one. */
export function rateText(perSecond: number): string {
  if (perSecond >= 1) return `${countText(perSecond)}/s`;
  if (perSecond * 60 >= 1) return `${countText(neat(perSecond * 60))}/m`;
  if (perSecond * 3_600 >= 1) return `${countText(neat(perSecond * 3_600))}/h`;
  return `${countText(neat(perSecond * 86_400))}/d`;
}

export function spanText(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 90) return `${whole} s`;
  if (whole < 5_400) return `${Math.round(whole / 60)} min`;
  if (whole < 172_800) return `${Math.round(whole / 3_600)} h`;
  return `${Math.round(whole / 86_400)} d`;
}

/** To the second. @param instant - RFC 3339, in UTC. */
export function instantText(instant: string): string {
  return `${instant.slice(0, 19).replace("T", " ")} UTC`;
}

/** 5/m is 4.999... when it is multiplied back. */
function neat(value: number): number {
  const whole = Math.round(value);
  return Math.abs(value - whole) < 1e-6 * value ? whole : value;
}
