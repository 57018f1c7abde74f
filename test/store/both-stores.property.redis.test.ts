import fc from "fast-check";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Limit } from "../../src/core/limit.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { ask, askingStep, fullAfterUs } from "./asking-steps.ts";
import { BothStores, LANES } from "./both-stores.ts";
import { DAMAGES } from "./damage.ts";
import { type Item, keysOfLane, limitOf, MS, SECOND } from "./pod.ts";

let server: RedisServer;
let admin: Redis;

beforeAll(async () => {
  server = await startRedis();
  admin = new Redis(server.port, server.host);
});

afterAll(async () => {
  admin.disconnect();
  await server.dispose();
});

/** From one a day to a million a second; the last has ticks of a millisecond. */
const LIMITS: readonly (readonly Limit[])[] = [
  [
    limitOf({ name: "day", tokens: 1, spanUs: 86_400 * SECOND, burst: 3 }),
    limitOf({ name: "day", tokens: 2, spanUs: 86_400 * SECOND, burst: 5 }),
  ],
  [
    limitOf({ name: "login", tokens: 5, spanUs: 900 * SECOND, burst: 5 }),
    limitOf({ name: "login", tokens: 5, spanUs: 900 * SECOND, burst: 50 }),
  ],
  [
    limitOf({ name: "api", tokens: 1000, burst: 1000 }),
    limitOf({ name: "api", tokens: 500, burst: 500 }),
    limitOf({ name: "api", tokens: 1000, burst: 10_000, intervalUs: 300 * MS }),
  ],
  [limitOf({ name: "mega", tokens: 1_000_000, burst: 1_000_000, intervalUs: 50 * MS })],
  [
    limitOf({ name: "bulk", tokens: 1_000_000_000, spanUs: 86_400 * SECOND, burst: 1_000_000_000 }),
    limitOf({ name: "bulk", tokens: 999_999_937, spanUs: 86_400 * SECOND, burst: 1_000_000_000 }),
  ],
  [limitOf({ name: "odd", tokens: 7, spanUs: 13 * SECOND, burst: 11, intervalUs: 30 * MS })],
];

const KEYS = Array.from({ length: LANES }, (_, lane) => keysOfLane(lane, LANES, 2)).flat();

const pods = fc.constantFrom("pod-a", "pod-b", "pod:{c}");
const incarnations = fc.constantFrom("a1", "a1", "a1", "b2");
const lanes = fc.nat(LANES - 1);
const seconds = fc.oneof(fc.constant(0.1), fc.double({ min: 0, max: 3, noNaN: true }));

/** Costs from nothing to what no bucket can bear, and refunds. */
const costs = fc.oneof(
  { weight: 6, arbitrary: fc.nat(30) },
  { weight: 2, arbitrary: fc.integer({ min: -50, max: 2_000 }) },
  { weight: 1, arbitrary: fc.constantFrom(1e12, -1e12, 1e9) },
);

const fields = fc.record({
  consumed: costs,
  demand: fc.nat(100),
  elapsedSeconds: seconds,
  registered: fc.nat(50),
  held: fc.nat(20),
  ownDemand: fc.double({ min: 0, max: 100, noNaN: true }),
  repliedAt: fc.nat(1),
  gapSeconds: fc.double({ min: 0, max: 0.1, noNaN: true }),
  rttSeconds: fc.constantFrom(0.005, 0.06, 0),
  want: fc.oneof(fc.constant(0), fc.nat(60)),
  flow: fc.double({ min: 0, max: 10, noNaN: true }),
  lost: fc.constantFrom(0.1, 0, 1),
  fullAt: fullAfterUs,
});

const item = fc
  .record({ group: fc.nat(LIMITS.length - 1), version: fc.nat(2), key: fc.nat(1), fields })
  .map(({ group, version, key, fields: chosen }) => {
    const versions = LIMITS[group] ?? [];
    return { limit: versions[version % versions.length] as Limit, key, fields: chosen };
  });

/** Ordinary waiting, long idleness, and steps of Redis's clock of -8 to +60 s. */
const pass = fc.record({
  op: fc.constant("pass" as const),
  us: fc.oneof(fc.constantFrom(0, 1, 100 * MS, 300 * MS), fc.nat(2 * SECOND), fc.nat(100 * SECOND)),
  stepUs: fc.oneof(
    { weight: 5, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.integer({ min: -8 * SECOND, max: 60 * SECOND }) },
  ),
});

const batch = fc.record({
  op: fc.constant("batch" as const),
  pod: pods,
  incarnation: incarnations,
  lane: lanes,
  items: fc.uniqueArray(item, {
    maxLength: 6,
    selector: ({ limit, key }) => `${limit.name} ${key}`,
  }),
  pods: fc.integer({ min: 1, max: 60 }),
  hold: fc.constantFrom(0, 0, 0, 0.27),
  first: fc.constantFrom(false, false, false, true),
});

/** What leased and exact mode leave behind, and clocks that are gone. */
const planted = fc.record({
  tUs: fc.oneof(
    fc.constant(0),
    fc.integer({ min: -2 * SECOND, max: 0 }),
    fc.integer({ min: -20 * SECOND, max: 20 * SECOND }),
  ),
  leases: fc.tuple(...[0, 1, 2].map(() => fc.constantFrom(0, 0.1, 0.33, 0.7))),
  spent: fc.constantFrom(0, 0.05, 0.5, 1.5),
  stock: fc.nat(30),
  slotUs: fc.nat(700 * MS),
  ticketUs: fc.nat(20 * SECOND),
});

const other = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ op: fc.constant("plant" as const), lane: lanes, item, planted }),
  },
  fc.record({
    op: fc.constant("again" as const),
    pod: pods,
    incarnation: incarnations,
    lane: lanes,
    older: fc.boolean(),
  }),
  fc.record({
    op: fc.constant("heartbeat" as const),
    pod: pods,
    incarnation: incarnations,
    largeCosts: fc.array(fc.constantFrom("api", "bulk", "day", "login"), { maxLength: 3 }),
  }),
  fc.record({ op: fc.constant("run" as const), run: fc.constantFrom(0, 1, 2, 2 ** 48 - 1) }),
  fc.record({ op: fc.constant("leave" as const), pod: pods, incarnation: incarnations }),
  fc.record({
    op: fc.constant("damage" as const),
    lane: lanes,
    item,
    damage: fc.constantFrom(...DAMAGES),
  }),
  fc.record({
    op: fc.constant("damageLane" as const),
    lane: lanes,
    damage: fc.constantFrom(...DAMAGES),
  }),
  fc.record({ op: fc.constant("flush" as const) }),
  {
    weight: 3,
    arbitrary: fc.record({ op: fc.constant("drop" as const), lane: lanes, item }),
  },
);

const steps = fc.oneof(
  { weight: 4, arbitrary: batch },
  {
    weight: 6,
    arbitrary: askingStep(item, { pod: pods, incarnation: incarnations, lane: lanes }),
  },
  { weight: 3, arbitrary: pass },
  { weight: 3, arbitrary: other },
);

type Step = typeof steps extends fc.Arbitrary<infer T> ? T : never;

const keyIn = (lane: number, index: number): string => KEYS[lane * 2 + index] as string;

async function play(both: BothStores, step: Step): Promise<void> {
  switch (step.op) {
    case "pass":
      return both.pass(step.us, step.stepUs);
    case "batch": {
      const items: Item[] = step.items.map((each) => ({
        ...each,
        key: keyIn(step.lane, each.key),
      }));
      await both.batch(step.pod, step.incarnation, step.lane, items, step);
      return;
    }
    case "again":
      return both.again(step.pod, step.incarnation, step.lane, step.older);
    case "heartbeat":
      await both.roster(step.pod, step.incarnation, step.largeCosts);
      return;
    case "ask":
      return ask(both, step, keyIn);
    case "run":
      return both.changeRun(step.run);
    case "leave":
      return both.leave(step.pod, step.incarnation);
    case "plant":
      return both.plant(step.item.limit, keyIn(step.lane, step.item.key), step.planted);
    case "damage":
      return both.damageKey(step.item.limit, keyIn(step.lane, step.item.key), step.damage);
    case "damageLane":
      return both.damageLane(step.lane, step.damage);
    case "drop":
      return both.drop(step.item.limit, keyIn(step.lane, step.item.key));
    case "flush":
      return both.flush();
  }
}

describe("Redis and the embedded store", () => {
  it("answer and store the same bits, whatever pods, clocks and vandals do", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(steps, { minLength: 20, maxLength: 200 }), async (sequence) => {
        await admin.flushall();
        const both = new BothStores(server, admin);
        try {
          for (const step of sequence) await play(both, step);
          await both.compareAll();
          for (const name of await admin.keys("*")) {
            expect(await admin.pttl(name), name).toBeGreaterThan(0);
          }
        } finally {
          await both.close();
        }
      }),
      { numRuns: 100, interruptAfterTimeLimit: 90_000, markInterruptAsFailure: false },
    );
  }, 120_000);
});
