/** Numbers as people read them. */

/** Three significant digits, thousands set apart, no exponent for what a limiter can meet. */
export function shortNumber(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "–" : "never";
  const size = Math.abs(value);
  if (size >= 1000 || Number.isInteger(value)) return grouped(Math.round(value));
  if (size >= 100) return value.toFixed(0);
  if (size >= 10) return value.toFixed(1);
  if (size >= 0.01 || value === 0) return value.toFixed(2);
  return value.toPrecision(2);
}

export function percent(part: number): string {
  const value = 100 * part;
  return `${Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(1)} %`;
}

export function seconds(us: number): string {
  return `${shortNumber(us / 1e6)} s`;
}

function grouped(whole: number): string {
  return String(whole).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}
