/**
 * Thirty real sidecars. They take 2 GB and the better part of two cores while they start, so this
 * runs only when it is asked for: `npm run test:thirty-pods`. What it shows with thirty, the other
 * tests of listed fleets show with three.
 */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { KubeApi } from "../support/kube-api.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { type Sidecar, stopSidecars } from "../support/sidecar.ts";
import {
  admittedPerSecond,
  everyPodCounts,
  inFallback,
  listedBy,
  startPods,
} from "./listed-pods.ts";

const { ALIQUOT_THIRTY_PODS: askedFor } = process.env;
const PATIENCE = { timeout: 600_000 };
const PODS = 30;
const RATE = 300;
const MARGIN = 0.9;
/** Twice the rate over all of them. */
const OFFERED = (2 * RATE) / PODS;
const LIMITS =
  `  - { name: api, rate: ${RATE}/s, burst: ${RATE}, ` +
  `fallback: { margin: ${MARGIN}, max_pods: 3 } }`;

let redis: RedisServer;
let api: KubeApi;

beforeEach(async () => {
  redis = await startRedis();
  api = new KubeApi();
  await api.start();
});

afterEach(async () => {
  await stopSidecars();
  await api.dispose();
  await redis.dispose();
});

/** Three at a time: more would only wait for each other. */
async function start(count: number): Promise<Sidecar[]> {
  const pods: Sidecar[] = [];
  while (pods.length < count) {
    const options = { limits: LIMITS, redisUrl: redis.url, ...listedBy(api) };
    pods.push(...(await startPods(Math.min(3, count - pods.length), options)));
  }
  return pods;
}

async function timed(what: string, wait: Promise<void>): Promise<number> {
  const begun = performance.now();
  await wait;
  const ms = performance.now() - begun;
  process.stdout.write(`${what}: ${Math.round(ms)} ms\n`);
  return ms;
}

describe.skipIf(askedFor === undefined)("thirty pods that Kubernetes lists", () => {
  it("come and go: 3, 30, 5", PATIENCE, async () => {
    api.setPods(3);
    const pods = await start(3);
    await everyPodCounts(pods, 3, 5_000);
    api.setPods(PODS);
    await timed("3 to 30 listed", everyPodCounts(pods, PODS, 2_000));
    pods.push(...(await start(PODS - 3)));
    await timed("all 30 count 30", everyPodCounts(pods, PODS, 5_000));
    // Whether the parts make the whole; a busy machine offers late, and so admits less.
    await admittedPerSecond(pods, 3_000, OFFERED);
    const connected = await admittedPerSecond(pods, 8_000, OFFERED);
    process.stdout.write(`connected: ${connected.toFixed(0)} of ${RATE} a second\n`);
    expect(connected).toBeLessThanOrEqual(1.1 * RATE);
    expect(connected).toBeGreaterThanOrEqual(0.7 * RATE);

    const left = pods.splice(5);
    api.setPods(5);
    const fell = timed("30 to 5", everyPodCounts(pods, 5, 15_000));
    await Promise.all(left.map((pod) => pod.terminate()));
    expect(await fell).toBeGreaterThan(3_000);
  });

  it("do so while Redis is stopped, and admit margin times the rate", PATIENCE, async () => {
    api.setPods(3);
    const pods = await start(3);
    await everyPodCounts(pods, 3, 5_000);
    await redis.stop();
    await inFallback(pods, 1);
    api.setPods(PODS);
    await timed("3 to 30 listed, without Redis", everyPodCounts(pods, PODS, 2_000));
    pods.push(...(await start(PODS - 3)));
    // The last to start are still busy with that.
    await timed("all 30 count 30, without Redis", everyPodCounts(pods, PODS, 5_000));
    // What the buckets of the first three still held is spent first.
    await admittedPerSecond(pods, 3_000, OFFERED);
    const isolated = await admittedPerSecond(pods, 10_000, OFFERED);
    process.stdout.write(`isolated: ${isolated.toFixed(0)} of ${MARGIN * RATE} a second\n`);
    expect(isolated).toBeLessThanOrEqual(1.02 * MARGIN * RATE);
    expect(isolated).toBeGreaterThanOrEqual(0.6 * MARGIN * RATE);

    const left = pods.splice(5);
    api.setPods(5);
    const fell = timed("30 to 5, without Redis", everyPodCounts(pods, 5, 15_000));
    await Promise.all(left.map((pod) => pod.crash()));
    expect(await fell).toBeGreaterThan(3_000);
  });
});
