/** Axes: round ticks, and places as parts of the axis so that charts can be as wide as the page. */

export interface Axis {
  readonly most: number;
  readonly ticks: readonly number[];
  /** 0 at the beginning, 1 at the end; beyond that, cut off. */
  place(value: number): number;
}

/** From 0 to at least `most`, with about `count` round ticks. */
export function linearAxis(most: number, count: number): Axis {
  const end = most > 0 ? most : 1;
  const step = roundStep(end / count);
  const last = Math.ceil(end / step - 1e-9) * step;
  const ticks = Array.from({ length: Math.round(last / step) + 1 }, (_, i) => i * step);
  return { most: last, ticks, place: (value) => clamp(value / last) };
}

/** From 0 to exactly `most`: time, which ends where the run ends. */
export function exactAxis(most: number, count: number): Axis {
  const step = roundStep(most / count);
  const ticks = Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, i) => i * step);
  return { most, ticks, place: (value) => clamp(value / most) };
}

/** 0, then powers of ten from `unit` on: for figures that differ by orders of magnitude. */
export function magnitudeAxis(most: number, unit: number): Axis {
  const decades = Math.max(1, Math.ceil(Math.log10(Math.max(most, unit) / unit) - 1e-9) + 1);
  const ticks = [0, ...Array.from({ length: decades }, (_, i) => unit * 10 ** i)];
  const place = (value: number): number => {
    if (value <= unit) return clamp(value / unit / decades);
    return clamp((1 + Math.log10(value / unit)) / decades);
  };
  return { most: unit * 10 ** (decades - 1), ticks, place };
}

function clamp(part: number): number {
  return Math.min(1, Math.max(0, part));
}

/** 1, 2 or 5 times a power of ten, at least `least`. */
function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  const factor = [1, 2, 5, 10].find((each) => each * power >= least * (1 - 1e-9)) ?? 10;
  return factor * power;
}
