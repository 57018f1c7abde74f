import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../fleet/until.ts";
import { StoredState } from "../daemon/stored.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { type Sidecar, startSidecar, stopSidecars } from "../support/sidecar.ts";

/** Refills so slowly that what is missing in the store is what was recorded. */
const LIMITS = "  - { name: api, rate: 1/d, burst: 100 }";
const LEFT_TO_REFILL = 0.01;

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

describe("O13 (a)(b) what real pods admit and what Redis records", () => {
  it.each([1, 3])("are equal with %i pods, and denied checks record nothing", async (count) => {
    const pods: Sidecar[] = await Promise.all(
      Array.from({ length: count }, () => startSidecar({ limits: LIMITS, redisUrl: redis.url })),
    );
    const admittedByCounters = async (): Promise<number> => {
      const sums = await Promise.all(
        pods.map((pod) => pod.sum("aliquot_tokens_total", 'outcome="allowed"')),
      );
      return sums.reduce((total, sum) => total + sum, 0);
    };
    const untilRecorded = (tokens: number): Promise<void> =>
      until(`${tokens} tokens are recorded`, 5_000, async () => {
        return Math.abs((await stored.missing("api", "k")) - tokens) < LEFT_TO_REFILL;
      });

    let admitted = 0;
    // Far more than the burst: at the end every pod has denied, and nothing is left.
    for (let i = 0; i < 240; i += 1) {
      const verdict = await (pods[i % count] as Sidecar).check("api", "k");
      if (verdict.allowed) admitted += 1;
    }
    await untilRecorded(admitted);
    expect(await admittedByCounters()).toBe(admitted);

    for (let i = 0; i < 40; i += 1) {
      const verdict = await (pods[i % count] as Sidecar).check("api", "k");
      if (verdict.allowed) admitted += 1;
    }
    await untilRecorded(admitted);
    expect(await admittedByCounters()).toBe(admitted);
    // The last few tokens may still lie with pods that did not ask for them again.
    expect(admitted).toBeGreaterThanOrEqual(80);
    expect(admitted).toBeLessThanOrEqual(100);
  });
});
