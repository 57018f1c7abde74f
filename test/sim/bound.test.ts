/** The bound in closed form, against numbers worked out by hand. */
import { expect, test } from "vitest";
import { type BoundTerms, boundOf, epsBound } from "../../sim/bound.ts";
import { limitOf } from "../../sim/scenarios/scenario-of.ts";

const TERMS: BoundTerms = {
  pods: 20,
  rttUs: 4_000,
  podsFactor: 1,
  loss: 0,
  commandTimeoutUs: 50_000,
};

test.each([
  // cold b + max(N, r I) + r (I + RTT)
  ["20 pods, b = 1 s of r", limitOf({}), TERMS, 100 + 100 + 104],
  ["60 pods: cold stock in whole tokens", limitOf({}), { ...TERMS, pods: 60 }, 60 + 100 + 104],
  ["b = 0.3 s of r, I = 75 ms", limitOf({ burst: 300 }), TERMS, 20 + 75 + 79],
  ["cold stock at most 2 s of r", limitOf({ rate: 10, burst: 3600 }), TERMS, 20 + 20 + 1.04],
  ["no cold stock below one token each", limitOf({ rate: 10, burst: 60 }), TERMS, 20 + 1.04],
  ["a single pod", limitOf({}), { ...TERMS, pods: 1 }, 100],
  ["a single pod, small", limitOf({ rate: 1, burst: 10 }), { ...TERMS, pods: 1 }, 1],
  ["a third of the pods known", limitOf({}), { ...TERMS, podsFactor: 1 / 3 }, 300 + 3 * 204],
  ["more pods believed in", limitOf({}), { ...TERMS, podsFactor: 3 }, 20 + 204],
  ["10 % loss", limitOf({}), { ...TERMS, loss: 0.1 }, 304 + 20 + 50],
] as const)("%s", (_, limit, terms, tokens) => {
  expect(epsBound(limit, terms)).toBeCloseTo(tokens, 6);
});

test.each([
  ["leased: nothing, whatever the fleet", limitOf({ mode: "leased" }), 0],
  ["exact: what refills in 50 ms", limitOf({ mode: "exact" }), 50],
  ["hybrid", limitOf({}), 304],
  ["auto, ordinary: as hybrid", limitOf({ mode: "auto" }), 304],
  ["auto, shared by up to 2 pods only", limitOf({ rate: 10, mode: "auto" }), 2 + 1.04],
  ["auto, too short to share: leased by many", limitOf({ burst: 100, mode: "auto" }), 0],
] as const)("the bound of %s", (_, limit, tokens) => {
  expect(boundOf(limit, TERMS)).toBeCloseTo(tokens, 1);
});
