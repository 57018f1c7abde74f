/**
 * Three real sidecars whose fleet is listed by a Kubernetes API server or by DNS: N follows what is
 * listed, also while Redis is stopped, and then the fallback uses it.
 */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../fleet/until.ts";
import { DnsServer } from "../support/dns-server.ts";
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

/** Several sidecars and their load share two cores with other tests. */
const PATIENCE = { timeout: 120_000 };
const RATE = 300;
const MARGIN = 0.9;
const LIMITS =
  `  - { name: api, rate: ${RATE}/s, burst: ${RATE}, ` +
  `fallback: { margin: ${MARGIN}, max_pods: 3 } }`;

let redis: RedisServer;
let api: KubeApi;
let dns: DnsServer;

beforeEach(async () => {
  redis = await startRedis();
  api = new KubeApi();
  await api.start();
  dns = new DnsServer();
  await dns.start();
});

afterEach(async () => {
  await stopSidecars();
  await api.dispose();
  await dns.dispose();
  await redis.dispose();
});

const startListedByKubernetes = (): Promise<Sidecar[]> =>
  startPods(3, { limits: LIMITS, redisUrl: redis.url, ...listedBy(api) });

/** Offers more than its share to every pod. */
const admitted = (pods: readonly Sidecar[], forMs: number): Promise<number> =>
  admittedPerSecond(pods, forMs, 60);

describe("a fleet that Kubernetes lists", () => {
  it("grows within 2 s and falls late: 3, 30, 5", PATIENCE, async () => {
    api.setPods(3);
    const pods = await startListedByKubernetes();
    await everyPodCounts(pods, 3, 5_000);

    api.setPods(30);
    await everyPodCounts(pods, 30, 2_000);
    const fellFrom = performance.now();
    api.setPods(5);
    await everyPodCounts(pods, 5, 10_000);
    expect(performance.now() - fellFrom).toBeGreaterThan(3_000);
  });

  it("does so while Redis is stopped, and the fallback uses it", PATIENCE, async () => {
    api.setPods(3);
    const pods = await startListedByKubernetes();
    await everyPodCounts(pods, 3, 5_000);
    await redis.stop();
    await inFallback(pods, 1);

    api.setPods(30);
    await everyPodCounts(pods, 30, 2_000);
    // What the fuller buckets of three pods still held is spent first.
    await admitted(pods, 2_000);
    const share = (MARGIN * RATE * pods.length) / 30;
    const isolated = await admitted(pods, 5_000);
    expect(isolated).toBeLessThanOrEqual(1.05 * share);
    expect(isolated).toBeGreaterThanOrEqual(0.7 * share);

    api.setPods(5);
    await everyPodCounts(pods, 5, 10_000);
    // A fleet that shrank while nobody could report keeps the share of the larger one.
    // The burst is one second of the rate, and has come back meanwhile.
    expect(await admitted(pods, 3_000)).toBeLessThanOrEqual((1.1 * share * 4) / 3);

    await redis.start();
    await inFallback(pods, 0);
    await everyPodCounts(pods, 5, 10_000);
  });

  it(
    "is one pod that starts while Redis is away, and knows how many there are",
    PATIENCE,
    async () => {
      api.setPods(30);
      await redis.stop();
      const pods = await startListedByKubernetes();
      await everyPodCounts(pods, 30, 2_000);
      await admitted(pods, 1_000);
      const share = (MARGIN * RATE * pods.length) / 30;
      expect(await admitted(pods, 4_000)).toBeLessThanOrEqual(1.1 * share);
    },
  );

  it(
    "is counted by heartbeats alone while the API server says no, and that is logged",
    PATIENCE,
    async () => {
      api.failure = { status: 403 };
      const pods = await startListedByKubernetes();
      await everyPodCounts(pods, 3, 5_000);
      await until("the log tells why", 10_000, () =>
        pods.every((pod) => /list and watch/.test(pod.output)),
      );
      expect(pods.every((pod) => pod.alive)).toBe(true);
      const exits = await Promise.all(pods.map((pod) => pod.terminate()));
      expect(exits.map(({ code }) => code)).toEqual([0, 0, 0]);
    },
  );
});

describe("a fleet that DNS lists", () => {
  it("grows with the next answers, also while Redis is stopped", PATIENCE, async () => {
    const name = "web.shop.svc.cluster.local";
    dns.set(name, 3);
    const extra = `membership: { source: dns, service: ${name}., resolver: 127.0.0.1:${dns.port} }`;
    const pods = await startPods(3, { limits: LIMITS, redisUrl: redis.url, extra });
    await everyPodCounts(pods, 3, 5_000);
    await redis.stop();
    await inFallback(pods, 1);
    dns.set(name, 12);
    await everyPodCounts(pods, 12, 8_000);
    dns.silent = true;
    const exits = await Promise.all(pods.map((pod) => pod.terminate()));
    expect(exits.map(({ code }) => code)).toEqual([0, 0, 0]);
  });
});
