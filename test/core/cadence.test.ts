import { expect, it } from "vitest";
import { Cadence, PORTION_MAX } from "../../src/core/cadence.ts";

interface Handed {
  readonly slot: number;
  readonly lookAt: number;
}

function turn(cadence: Cadence, now: number): Handed[] {
  const handed: Handed[] = [];
  for (let i = cadence.turn(now, 0.5); i < cadence.turned; i += 1) {
    handed.push({ slot: cadence.slotAt(i), lookAt: cadence.lookAtOf(i) });
  }
  return handed;
}

it("hands out every key once, in portions that are wanted at once", () => {
  const cadence = new Cadence(100_000, 0);
  const count = 2 * PORTION_MAX + 1;
  for (let slot = 0; slot < count; slot += 1) cadence.add(slot, slot, 0);
  expect(cadence.nextAt).toBe(100_000);
  const seen: number[] = [];
  const portions: number[] = [];
  while (cadence.nextAt <= 100_000) {
    const portion = turn(cadence, 100_000);
    portions.push(portion.length);
    seen.push(...portion.map(({ slot }) => slot));
    expect(portion.every(({ slot, lookAt }) => slot === lookAt)).toBe(true);
  }
  expect(portions).toEqual([PORTION_MAX, PORTION_MAX, 1]);
  expect(seen).toEqual(Array.from({ length: count }, (_, slot) => slot));
  expect(cadence.nextAt).toBe(Number.POSITIVE_INFINITY);
});

it("keeps keys that come up during a turn for the next one", () => {
  const cadence = new Cadence(100_000, 0);
  cadence.add(1, 0, 0);
  turn(cadence, 100_000);
  cadence.add(2, 0, 100_000);
  expect(cadence.nextAt).toBe(200_000);
  expect(turn(cadence, 200_000)).toEqual([{ slot: 2, lookAt: 0 }]);
});
