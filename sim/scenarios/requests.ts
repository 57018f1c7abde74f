/** What requests ask for: costs, several limits at once, many keys, small limits. */
import type { Scenario } from "../scenario.ts";
import type { SimCheck } from "../scheme.ts";
import { costs, keys, ONE_CHECK, onOff, salvos, traffic, zipf } from "../traffic.ts";
import {
  answeredWithin,
  excessAtMost,
  longRun,
  utilisationAtLeast,
  withinBound,
} from "../verdicts.ts";
import { limitOf, SECOND, scenarioOf } from "./scenario-of.ts";

const COSTS = "costs and several limits";
const SMALL = "small limits";

function weighted(name: string, list: readonly number[], times: number, util: number): Scenario {
  const mean = list.reduce((sum, cost) => sum + cost, 0) / list.length;
  return scenarioOf(COSTS, {
    name,
    question: `Requests that cost ${list.join(", ")} tokens at ${times} r: is the limit used?`,
    workload: traffic(`costs of ${list.join(", ")}, ${times} r in all`, [
      { perSecond: (times * 1000) / mean, checks: costs(list) },
    ]),
    verdicts: [withinBound(), longRun(), utilisationAtLeast(util)],
  });
}

/** Bursts of random load against a limit that is small for the fleet. */
function small(
  name: string,
  given: { rate: number; burst: number; pods: number; util: number },
): Scenario {
  const { rate, burst, pods, util } = given;
  const periodUs = Math.round((1.5 * burst * SECOND) / rate) + 2 * SECOND;
  return scenarioOf(SMALL, {
    name,
    question: `r = ${rate}/s, b = ${burst} over ${pods} pods: what of it can be used?`,
    pods,
    durationUs: Math.max(60 * SECOND, 6 * periodUs),
    limits: [limitOf({ rate, burst })],
    workload: traffic("three times r for a third of the time, else nothing", [
      {
        perSecond: onOff(3 * rate, 0, Math.round(periodUs / 3), periodUs),
        perSecondMax: 3 * rate,
      },
    ]),
    verdicts: [withinBound(), longRun(), utilisationAtLeast(util), answeredWithin(11_000)],
  });
}

const TWO: readonly SimCheck[] = [
  { limit: 0, key: "user", cost: 1 },
  { limit: 1, key: "all", cost: 1 },
];

export const REQUESTS: readonly Scenario[] = [
  weighted("costs-1-5-20-half", [1, 1, 5, 20], 0.5, 0.99),
  weighted("costs-1-5-20", [1, 1, 5, 20], 2, 0.98),
  weighted("costs-50", [50], 2, 0.97),
  weighted("costs-quarter-burst", [250, 1, 1, 1], 0.5, 0.95),
  scenarioOf(COSTS, {
    name: "costs-beyond-burst",
    question: "Requests dearer than the burst beside ordinary ones: do they disturb anything?",
    workload: traffic("2 r of cost 1, and 5/s of cost 1500", [
      { perSecond: 2000 },
      { perSecond: 5, checks: costs([1500]) },
    ]),
    verdicts: [withinBound(), longRun(), utilisationAtLeast(0.99)],
  }),
  scenarioOf(COSTS, {
    name: "two-limits",
    question:
      "Two limits on every request, the second tighter: is each kept, and the tight one used?",
    limits: [limitOf({ name: "user" }), limitOf({ name: "all", rate: 600 })],
    workload: traffic("2 r of limit 0", [{ perSecond: 2000, checks: () => TWO }]),
    verdicts: [withinBound(), longRun(), utilisationAtLeast(0.98)],
  }),
  scenarioOf(COSTS, {
    name: "two-of-four-limits",
    question: "Two limits out of four on every request: does a denial by one spend of the other?",
    limits: [0, 1, 2, 3].map((i) => limitOf({ name: `l${i}`, rate: 400 + 200 * i })),
    workload: traffic("3000/s, two of four limits each", [
      {
        perSecond: 3000,
        checks: (random) => {
          const one = random.below(4);
          const other = (one + 1 + random.below(3)) % 4;
          return [
            { limit: one, key: "k", cost: 1 },
            { limit: other, key: "k", cost: 1 },
          ];
        },
      },
    ]),
    verdicts: [withinBound(), longRun()],
  }),
  scenarioOf("many keys", {
    name: "zipf-over-keys",
    question:
      "Two thousand keys, most with a request now and then at some pod: is each limit kept?",
    limits: [limitOf({ rate: 20, burst: 40 })],
    workload: traffic("3000/s, Zipf over 2000 keys, random pods", [
      { perSecond: 3000, checks: keys(zipf(2000, 1)) },
    ]),
    verdicts: [withinBound(), utilisationAtLeast(0.97), answeredWithin(11_000)],
  }),
  scenarioOf("many keys", {
    name: "unique-keys",
    question: "Every request has a key of its own: what does a key cost that is seen once?",
    durationUs: 10 * SECOND,
    limits: [limitOf({ rate: 10, burst: 20 })],
    workload: traffic("1000/s, 100,000 keys", [
      { perSecond: 1000, checks: keys((random) => random.below(100_000)) },
    ]),
    verdicts: [withinBound(), utilisationAtLeast(0.98), answeredWithin(11_000)],
  }),
  small("small-1-over-20", { rate: 1, burst: 1, pods: 20, util: 0.4 }),
  small("small-10-over-20", { rate: 10, burst: 10, pods: 20, util: 0.9 }),
  small("small-50-over-20", { rate: 50, burst: 50, pods: 20, util: 0.95 }),
  small("small-200-over-20", { rate: 200, burst: 200, pods: 20, util: 0.96 }),
  small("small-1-b10-over-3", { rate: 1, burst: 10, pods: 3, util: 0.9 }),
  scenarioOf(SMALL, {
    name: "user-burst",
    question:
      "One user, r = 1/s, b = 60: are 20 requests within 400 ms at random pods all admitted?",
    tags: ["ci"],
    durationUs: 120 * SECOND,
    limits: [limitOf({ rate: 1, burst: 60 })],
    workload: salvos(
      "20 requests 20 ms apart over random pods, every 25 s",
      [5, 30, 55, 80, 105].map((second) => ({
        atUs: second * SECOND,
        count: 20,
        spacingUs: 20_000,
        pod: (n: number) => (n * 7 + second) % 20,
        checks: ONE_CHECK,
      })),
    ),
    verdicts: [excessAtMost(0), utilisationAtLeast(0.98), answeredWithin(11_000)],
  }),
];
