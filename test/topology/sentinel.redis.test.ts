import { afterEach, describe, expect, it } from "vitest";
import { SentinelGroup } from "../../fleet/sentinel-group.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { startSidecar, stopSidecars } from "../support/sidecar.ts";
import { until } from "../support/until.ts";
import { consumed, gathered, settled } from "./bookkeeping.ts";
import { Traffic } from "./traffic.ts";

/** Refills a token a day: what is missing in the store is what was told to it. */
const LIMITS = [
  "  - { name: slow, rate: 1/d, burst: 100000 }",
  "  - { name: api, rate: 100/s, burst: 100 }",
].join("\n");
const KEY = "k";

let group: SentinelGroup;

afterEach(async () => {
  await stopSidecars();
  await group.dispose();
});

async function startPods(count: number) {
  const extra = `${group.yaml}\nfallback: { margin: 0.5 }`;
  const pods = await Promise.all(
    Array.from({ length: count }, () => startSidecar({ limits: LIMITS, extra })),
  );
  await gathered(pods);
  return pods;
}

const consumedIn = (server: RedisServer): Promise<number> =>
  consumed(group.client(server), "slow", KEY);

describe("a failover by Sentinel", () => {
  it.each([
    { how: "because the primary died", kills: true },
    { how: "on an operator's word", kills: false },
  ])(
    "$how: the pods find the new primary, and no caller notices",
    async ({ kills }) => {
      group = await SentinelGroup.start(startRedis);
      const pods = await startPods(3);
      const exact = new Traffic(pods, { limit: "slow", keys: [KEY], perSecond: 20 });
      const strict = new Traffic(pods, { limit: "api", keys: ["all"], perSecond: 60 });
      const before = await group.primary();
      await until("the first primary is told", 5_000, async () => (await consumedIn(before)) > 50);
      const orderedAtMs = exact.atMs;
      const replacing = kills ? group.successorOf(before) : group.failover();
      if (kills) await before.stop();
      const after = await replacing;
      const failedOverAtMs = exact.atMs;
      await until("every pod reaches the new primary", 8_000, async () => {
        const states = await Promise.all(pods.map((pod) => pod.metric("aliquot_store_up")));
        return states.every((state) => state === 1);
      });
      expect(exact.atMs - failedOverAtMs).toBeLessThan(6_000);
      const reachedAtMs = exact.atMs;
      const grown = await consumedIn(after);
      await until("the new primary is told", 3_000, async () => (await consumedIn(after)) > grown);
      await strict.during(2_000);
      await Promise.all([exact.stop(), strict.stop()]);
      await settled(pods);

      expect([...exact.failures, ...strict.failures]).toEqual([]);
      // What was told to the old primary and not passed on may be missing, and no more.
      const total = await consumedIn(after);
      const atRisk = exact.allowedBetween(orderedAtMs - 500, reachedAtMs);
      expect(total).toBeLessThanOrEqual(exact.allowed + 0.01);
      expect(total).toBeGreaterThanOrEqual(exact.allowed - atRisk - 0.01);
      const seconds = strict.atMs / 1_000;
      expect(strict.allowed).toBeLessThanOrEqual(100 + 100 * seconds + 60);
      expect(strict.allowed).toBeGreaterThan(0.4 * 100 * seconds);
      for (const pod of pods) expect(await pod.metric("aliquot_lost_tokens_total")).toBe(0);
    },
    90_000,
  );
});
