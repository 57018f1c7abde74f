import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../fleet/until.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { type Sidecar, startSidecar, stopSidecars } from "../support/sidecar.ts";
import { offer } from "./load.ts";
import { StoredState } from "./stored.ts";
import { workersOf } from "./workers.ts";

const WORKERS = 3;
const LIMITS = [
  "  - { name: api, rate: 100/s, burst: 100, mode: hybrid }",
  "  - { name: daily, rate: 1/d, burst: 20000 }",
].join("\n");

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

const start = (podId = "pod"): Promise<Sidecar> =>
  startSidecar({ limits: LIMITS, redisUrl: redis.url, podId, extra: `workers: ${WORKERS}` });

describe("several workers with Redis", () => {
  it("admit together what one bucket admits, each as a member of the fleet", async () => {
    const sidecar = await start();
    await until("all are counted", 10_000, async () => {
      return (await stored.members()).length === WORKERS;
    });
    const pods = (await stored.members()).map((member) => member.replace(/\/[0-9a-f]{16}$/, ""));
    expect(pods.sort()).toEqual(["pod/0", "pod/1", "pod/2"]);
    expect(await sidecar.metric("aliquot_live_pods")).toBe(1);
    const seconds = 3;
    const began = performance.now();
    const { allowed, failed } = await offer(
      { sidecar, limit: "api", key: "k", perSecond: 300 },
      seconds * 1_000,
    );
    const tookSeconds = (performance.now() - began) / 1_000;
    expect(failed).toBe(0);
    const status = (await sidecar.status()) as { limits: { over_admission_bound: number }[] };
    const bound = status.limits[0]?.over_admission_bound ?? Number.NaN;
    expect(allowed).toBeLessThanOrEqual(100 + 100 * tookSeconds + bound);
    expect(allowed).toBeGreaterThan(0.6 * (100 + 100 * seconds));
  });

  it("tell every token before they go, and leave the fleet one by one", async () => {
    const sidecar = await start();
    const load = offer({ sidecar, limit: "daily", key: "k", perSecond: 200 }, 1_200);
    await new Promise((resolve) => setTimeout(resolve, 700));
    expect(await sidecar.terminate()).toEqual({ code: 0, signal: null });
    const { allowed } = await load;
    expect(allowed).toBeGreaterThan(20);
    expect(await stored.missing("daily", "k")).toBeCloseTo(allowed, 2);
    expect(await stored.members()).toEqual([]);
  });

  it("do the same when their primary is gone without a word", async () => {
    const sidecar = await start();
    const { allowed } = await offer({ sidecar, limit: "daily", key: "k", perSecond: 200 }, 400);
    expect(workersOf(sidecar.pid)).toHaveLength(WORKERS);
    await sidecar.crash();
    await until("all have left", 10_000, async () => (await stored.members()).length === 0);
    expect(await stored.missing("daily", "k")).toBeCloseTo(allowed, 2);
  });
});
