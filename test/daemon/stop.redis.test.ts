import { existsSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../fleet/until.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { type Sidecar, startSidecar, stopSidecars } from "../support/sidecar.ts";
import { offer } from "./load.ts";
import { StoredState } from "./stored.ts";

/** Refills one token a day, so that what is missing in the store is what was consumed. */
const LIMITS = "  - { name: api, rate: 1/d, burst: 20000 }";
const KEYS = Array.from({ length: 12 }, (_, index) => `key-${index}`);

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

// A report is debited in any case; a check may be denied when a busy machine makes replies late.
const start = (extra = "drain_timeout: 10s"): Promise<Sidecar> =>
  startSidecar({ limits: LIMITS, redisUrl: redis.url, extra });

async function storedTotal(): Promise<number> {
  let total = 0;
  for (const key of KEYS) total += await stored.missing("api", key);
  return total;
}

describe("SIGTERM", () => {
  it("in the middle of traffic reports every token that was admitted, and no more", async () => {
    const pods = await Promise.all([start(), start(), start()]);
    const loads = pods.flatMap((sidecar) =>
      KEYS.map((key) => offer({ sidecar, limit: "api", key, perSecond: 20 }, 2_500)),
    );
    // The pods end one after the other while requests are on their way.
    for (const [index, pod] of pods.entries()) {
      await new Promise((resolve) => setTimeout(resolve, index === 0 ? 800 : 300));
      expect(await pod.terminate()).toEqual({ code: 0, signal: null });
      expect(pod.output).not.toContain("warn");
    }
    const served = await Promise.all(loads);
    const admitted = served.reduce((sum, { allowed }) => sum + allowed, 0);
    expect(admitted).toBeGreaterThan(300);
    expect(await storedTotal()).toBeCloseTo(admitted, 2);
    expect(await stored.members()).toEqual([]);
    for (const pod of pods) expect(existsSync(pod.socket)).toBe(false);
  });

  it("reports refunds and debts as well", async () => {
    const pod = await start();
    // A first check asks the store, and is denied if no reply comes in time on a busy machine.
    await until("40 are admitted", 5_000, async () => {
      return (await pod.check("api", KEYS[0] ?? "", 40)).allowed;
    });
    await pod.report("api", KEYS[0] ?? "", -15);
    await pod.report("api", KEYS[1] ?? "", 7);
    await pod.terminate();
    expect(await stored.missing("api", KEYS[0] ?? "")).toBeCloseTo(25, 2);
    expect(await stored.missing("api", KEYS[1] ?? "")).toBeCloseTo(7, 2);
  });

  it("is seen by the others at once: the pod is no member any more", async () => {
    const [first, second] = await Promise.all([start(), start()]);
    await until("both count two pods", 5_000, async () => {
      return (await first.metric("aliquot_live_pods")) === 2;
    });
    await second.terminate();
    expect(await stored.members()).toHaveLength(1);
    // Down late: the largest count of three seconds holds.
    await until("one pod is left", 8_000, async () => {
      return (await first.metric("aliquot_live_pods")) === 1;
    });
  });

  it("takes readiness away at once and liveness at the end", async () => {
    const pod = await start();
    await pod.report("api", "k", 1);
    redis.pause();
    await pod.report("api", "k", 1);
    pod.signal("SIGTERM");
    await until("not ready", 2_000, async () => (await pod.probe("/readyz")) === 503);
    expect(await pod.probe("/livez")).toBe(200);
    await expect(pod.ask("api", "k")).rejects.toThrow();
    redis.resume();
    expect(await pod.exited).toEqual({ code: 0, signal: null });
    expect(await stored.missing("api", "k")).toBeCloseTo(2, 2);
  });

  it.each(["hangs", "is gone"] as const)(
    "ends with 0 in drain_timeout when Redis %s",
    async (how) => {
      const pod = await start("drain_timeout: 1s");
      await pod.report("api", "k", 1);
      if (how === "hangs") redis.pause();
      else await redis.stop();
      await pod.report("api", "k", 1);
      const begun = performance.now();
      expect(await pod.terminate()).toEqual({ code: 0, signal: null });
      expect(performance.now() - begun).toBeLessThan(6_000);
      expect(existsSync(pod.socket)).toBe(false);
      expect(pod.output).toContain("the store was not told of all admissions");
    },
  );

  it("ends the process at once when it comes a second time", async () => {
    const pod = await start();
    redis.pause();
    await pod.report("api", "k", 1);
    pod.signal("SIGTERM");
    await until("not ready", 2_000, async () => (await pod.probe("/readyz")) === 503);
    // Sooner, it would count as an echo of the first.
    await new Promise((resolve) => setTimeout(resolve, 400));
    const begun = performance.now();
    expect(await pod.terminate()).toEqual({ code: 1, signal: null });
    expect(performance.now() - begun).toBeLessThan(5_000);
  });

  it("counts once when it comes twice at once, as with Ctrl-C under npm", async () => {
    const pod = await start("drain_timeout: 1s");
    redis.pause();
    await pod.report("api", "k", 1);
    pod.signal("SIGINT");
    pod.signal("SIGTERM");
    expect(await pod.exited).toEqual({ code: 0, signal: null });
    expect(pod.output).not.toContain("second signal");
  });
});
