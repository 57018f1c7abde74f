/**
 * Pods whose time of day is wrong, or is set while they run. Only their idea of the date is moved,
 * in the process itself, so that the machine's other programs are left alone.
 */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../fleet/until.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { type Sidecar, startSidecar, stopSidecars } from "../support/sidecar.ts";
import { offer } from "./load.ts";
import { StoredState } from "./stored.ts";

const PATIENCE = { timeout: 90_000 };
const STEP_BACK_MS = 60_000;

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

/** Options of Node: the date is off by so much, and goes back a minute at SIGUSR2. */
function wrongDate(offMs: number): string {
  const script = `let off=${offMs};const now=Date.now;Date.now=()=>now()+off;process.on("SIGUSR2",()=>{off-=${STEP_BACK_MS};console.error("the date was set")})`;
  return `--import=data:text/javascript,${encodeURIComponent(script)}`;
}

function startPod(limits: string, offMs: number, withRedis: boolean): Promise<Sidecar> {
  return startSidecar({
    limits,
    extra: "membership: { timeout: 3s }",
    env: { NODE_OPTIONS: wrongDate(offMs) },
    ...(withRedis && { redisUrl: redis.url }),
  });
}

async function setBack(pods: readonly Sidecar[]): Promise<void> {
  for (const pod of pods) pod.signal("SIGUSR2");
  for (const pod of pods) {
    await until("the date was set", 5_000, () => pod.output.includes("the date was set"));
  }
}

/** What all pods admit of one key, and in how many seconds. */
async function admitted(
  pods: readonly Sidecar[],
  perSecond: number,
  forMs: number,
): Promise<{ tokens: number; seconds: number }> {
  const begun = performance.now();
  const served = await Promise.all(
    pods.map((sidecar) => offer({ sidecar, limit: "api", key: "k", perSecond }, forMs)),
  );
  const seconds = (performance.now() - begun) / 1_000;
  expect(served.reduce((sum, { failed }) => sum + failed, 0)).toBe(0);
  return { tokens: served.reduce((sum, { allowed }) => sum + allowed, 0), seconds };
}

describe("O4 (b) the date of a pod goes back a minute", () => {
  it("and it admits its rate as before: no more, and it does not freeze", PATIENCE, async () => {
    const pod = await startPod("  - { name: api, rate: 10/s, burst: 10 }", 0, false);
    await admitted([pod], 50, 1_500);
    await setBack([pod]);
    const begun = performance.now();
    const after = await admitted([pod], 50, 4_000);
    const sinceSet = (performance.now() - begun) / 1_000;
    // Another minute counted twice would be full buckets; a frozen one nothing at all.
    expect(after.tokens).toBeGreaterThanOrEqual(0.9 * 10 * 4);
    expect(after.tokens).toBeLessThanOrEqual(10 * sinceSet + 3);
  });
});

describe("O5 pods whose dates are five seconds apart", () => {
  it("share a limit, and count each other all the time", PATIENCE, async () => {
    const limits = "  - { name: api, rate: 60/s, burst: 30 }";
    const pods = await Promise.all([-5_000, 0, 5_000].map((off) => startPod(limits, off, true)));
    const livePods = () => Promise.all(pods.map((pod) => pod.metric("aliquot_live_pods")));
    await until("every pod counts 3", 10_000, async () => {
      return (await livePods()).every((count) => count === 3);
    });
    const counts = new Set<number>();
    let watching = true;
    const watch = (async () => {
      while (watching) {
        for (const count of await livePods()) counts.add(count);
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
    })();
    const before = await admitted(pods, 40, 4_000);
    await setBack(pods.slice(0, 1));
    const after = await admitted(pods, 40, 3_000);
    watching = false;
    await watch;
    const seconds = before.seconds + after.seconds;
    expect(before.tokens + after.tokens).toBeLessThanOrEqual(30 + 60 * (seconds + 0.5) + 6);
    expect(before.tokens + after.tokens).toBeGreaterThanOrEqual(0.8 * 60 * 7);
    expect([...counts]).toEqual([3]);
    const missing = await stored.missing("api", "k");
    expect(missing).toBeGreaterThanOrEqual(0);
  });
});
