import { expect, it } from "vitest";
import { Cadence, PORTION_MAX } from "../../src/core/cadence.ts";

it("hands out every key once, in portions that are wanted at once", () => {
  const cadence = new Cadence(100_000, 0);
  const count = 2 * PORTION_MAX + 1;
  for (let slot = 0; slot < count; slot += 1) cadence.add(slot, 0);
  expect(cadence.nextAt).toBe(100_000);
  const seen: number[] = [];
  const portions: number[] = [];
  while (cadence.nextAt <= 100_000) {
    const portion = cadence.turn(100_000, 0.5);
    portions.push(portion.length);
    seen.push(...portion);
  }
  expect(portions).toEqual([PORTION_MAX, PORTION_MAX, 1]);
  expect(seen).toEqual(Array.from({ length: count }, (_, slot) => slot));
  expect(cadence.nextAt).toBe(Number.POSITIVE_INFINITY);
});

it("keeps keys that come up during a turn for the next one", () => {
  const cadence = new Cadence(100_000, 0);
  cadence.add(1, 0);
  cadence.turn(100_000, 0.5);
  cadence.add(2, 100_000);
  expect(cadence.nextAt).toBe(200_000);
  expect(cadence.turn(200_000, 0.5)).toEqual([2]);
});
