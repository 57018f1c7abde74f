/** Numbers as `/status` writes them. */

/** Two digits behind the point are more than anyone reads; null for what is not known. */
export function rounded(value: number): number | null {
  return Number.isFinite(value) ? Math.round(value * 100) / 100 : null;
}

/** @param seconds - Since the epoch. */
export function rfc3339(seconds: number): string {
  return new Date(seconds * 1_000).toISOString();
}
