import { expect, it } from "vitest";
import { ahead } from "../../src/runtime/wake-timer.ts";

it.each([
  [10_000, 9_000],
  [100_000, 99_000],
  [5_000, 4_500],
  [1_000, 900],
  [9, 9],
])("what must be out within %i us is waited for %i us", (time, waited) => {
  expect(ahead(time)).toBe(waited);
});
