import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../fleet/until.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { type Sidecar, startSidecar, stopSidecars } from "../support/sidecar.ts";
import { offer } from "./load.ts";
import { StoredState } from "./stored.ts";

/** Tokens that pods may admit beyond rate and burst before they hear of each other: r · 0.1 s. */
const BETWEEN_RECONCILES = 10;
/** Several sidecars and their load share two cores with other tests. */
const PATIENCE = { timeout: 120_000 };

let redis: RedisServer;
let stored: StoredState;

beforeEach(async () => {
  redis = await startRedis();
  stored = new StoredState(redis);
});

afterEach(async () => {
  await stopSidecars();
  stored.close();
  await redis.dispose();
});

const limitOf = (perSecond: number): string =>
  `  - { name: api, rate: ${perSecond}/s, burst: ${perSecond} }`;

const startPods = (count: number, limits: string): Promise<Sidecar[]> =>
  Promise.all(Array.from({ length: count }, () => startSidecar({ limits, redisUrl: redis.url })));

const livePods = (pods: readonly Sidecar[]): Promise<number[]> =>
  Promise.all(pods.map((pod) => pod.metric("aliquot_live_pods")));

const everyPodCounts = (pods: readonly Sidecar[], count: number): Promise<void> =>
  until(`every pod counts ${count}`, 5_000, async () => {
    return (await livePods(pods)).every((live) => live === count);
  });

/** Offers the same rate to every pod and returns what all of them admitted. */
async function admittedBy(
  pods: readonly Sidecar[],
  perSecond: number,
  forMs: number,
): Promise<number> {
  const served = await Promise.all(
    pods.map((sidecar) => offer({ sidecar, limit: "api", key: "k", perSecond }, forMs)),
  );
  expect(served.reduce((sum, { failed }) => sum + failed, 0)).toBe(0);
  return served.reduce((sum, { allowed }) => sum + allowed, 0);
}

describe("O11 (a) the membership data vanishes", () => {
  it("and the fleet neither stops counting nor admits more", PATIENCE, async () => {
    const pods = await startPods(4, limitOf(80));
    await everyPodCounts(pods, 4);
    await admittedBy(pods, 40, 3_000);
    const begun = performance.now();
    const load = admittedBy(pods, 40, 6_000);
    await stored.forgetMembers();
    const registered = until("all are members again", 2_500, async () => {
      for (const live of await livePods(pods)) expect(live).toBeGreaterThanOrEqual(1);
      return (await stored.members()).length === 4;
    });
    await registered;
    const admitted = await load;
    const seconds = (performance.now() - begun) / 1_000;
    // Each pod for itself would admit all that it is offered, 160/s. The burst may have come back
    // between the two loads, on a busy machine.
    expect(admitted).toBeLessThanOrEqual(80 + 80 * seconds + BETWEEN_RECONCILES);
    expect(admitted).toBeGreaterThanOrEqual(0.8 * 80 * 6);
    expect(await livePods(pods)).toEqual([4, 4, 4, 4]);
  });
});

describe("O11 (b) a pod alone in an empty fleet", () => {
  it("counts itself and uses the whole limit", PATIENCE, async () => {
    const [pod] = await startPods(1, limitOf(80));
    const pods = pod === undefined ? [] : [pod];
    await everyPodCounts(pods, 1);
    const begun = performance.now();
    const admitted = await admittedBy(pods, 160, 9_000);
    const seconds = (performance.now() - begun) / 1_000;
    expect(admitted).toBeGreaterThanOrEqual(0.85 * (80 + 80 * 9));
    expect(admitted).toBeLessThanOrEqual(80 + 80 * seconds + BETWEEN_RECONCILES);
    expect(await livePods(pods)).toEqual([1]);
  });
});

describe("O10 pods that are added and removed", () => {
  it(
    "bring no burst of their own, are counted within 3 s, and leave their share behind",
    PATIENCE,
    async () => {
      const pods = await startPods(4, limitOf(100));
      await everyPodCounts(pods, 4);
      await admittedBy(pods, 50, 4_000);

      const begun = performance.now();
      const before = admittedBy(pods, 50, 8_000);
      const added = await startPods(2, limitOf(100));
      const fromNewcomers = admittedBy(added, 50, 5_000);
      await until("every pod counts 6", 3_000, async () => {
        return (await livePods([...pods, ...added])).every((live) => live === 6);
      });
      const admitted = (await before) + (await fromNewcomers);
      const seconds = (performance.now() - begun) / 1_000;
      expect(admitted).toBeLessThanOrEqual(100 + 100 * seconds + BETWEEN_RECONCILES);

      await Promise.all(added.map((pod) => pod.terminate()));
      // Shares of pods that left come back as the largest count of three seconds lapses. The load
      // goes on meanwhile, so that no burst gathers.
      await Promise.all([admittedBy(pods, 50, 5_000), everyPodCounts(pods, 4)]);
      const left = performance.now();
      const after = await admittedBy(pods, 50, 4_000);
      const afterFor = (performance.now() - left) / 1_000;
      expect(after).toBeGreaterThanOrEqual(0.8 * 100 * 4);
      expect(after).toBeLessThanOrEqual(100 + 100 * afterFor + BETWEEN_RECONCILES);
    },
  );
});

describe("O7 Redis is down for a while", () => {
  const limits =
    "  - { name: api, rate: 100/s, burst: 100, fallback: { margin: 0.5, max_pods: 20 } }";

  it.each(["refuses", "hangs"] as const)(
    "and %s: half the rate, then the whole again",
    PATIENCE,
    async (how) => {
      const pods = await startPods(4, limits);
      await everyPodCounts(pods, 4);
      await admittedBy(pods, 60, 3_000);

      if (how === "refuses") await redis.stop();
      else redis.pause();
      const isFallback = (active: number) => async (): Promise<boolean> => {
        const states = await Promise.all(pods.map((pod) => pod.metric("aliquot_fallback_active")));
        return states.every((state) => state === active);
      };
      const meanwhile = admittedBy(pods, 60, 4_000);
      await until("every pod is in fallback", 3_500, isFallback(1));
      await meanwhile;
      const begun = performance.now();
      for (const pod of pods) expect(await pod.partWithin(0.05)).toBeGreaterThanOrEqual(0.75);
      const isolated = await admittedBy(pods, 60, 5_000);
      const seconds = (performance.now() - begun) / 1_000;
      expect(isolated).toBeGreaterThanOrEqual(0.8 * 50 * 5);
      expect(isolated).toBeLessThanOrEqual(50 * seconds + 15);

      if (how === "refuses") await redis.start();
      else redis.resume();
      await until("no pod is in fallback", 5_000, isFallback(0));
      await admittedBy(pods, 60, 3_000);
      const back = performance.now();
      const recovered = await admittedBy(pods, 60, 5_000);
      const recoveredFor = (performance.now() - back) / 1_000;
      // Between the fallback's half and the whole: a busy machine costs some, the fallback would
      // half.
      expect(recovered).toBeGreaterThanOrEqual(0.8 * 100 * 5);
      expect(recovered).toBeLessThanOrEqual(100 + 100 * recoveredFor + BETWEEN_RECONCILES);
    },
  );
});
