import { Redis } from "ioredis";
import { afterEach, describe, expect, it } from "vitest";
import { until } from "../../fleet/until.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { startSidecar, stopSidecars } from "../support/sidecar.ts";
import { StalledProxy } from "../support/stalled-proxy.ts";
import { consumed, gathered, settled } from "./bookkeeping.ts";
import { Traffic } from "./traffic.ts";

const LIMITS = [
  "  - { name: slow, rate: 1/d, burst: 100000 }",
  "  - { name: api, rate: 20/s, burst: 20 }",
].join("\n");

const open: { close(): Promise<void> }[] = [];

afterEach(async () => {
  await stopSidecars();
  for (const each of open.splice(0).reverse()) await each.close();
});

async function server(args: readonly string[] = []): Promise<[RedisServer, Redis]> {
  const redis = await startRedis({ args });
  const admin = new Redis(redis.port, redis.host, { protocol: 2 });
  open.push({
    close: async () => {
      admin.disconnect();
      await redis.dispose();
    },
  });
  return [redis, admin];
}

describe("O6 a primary is demoted behind one address", () => {
  it("and keeps its connections: the pods leave it and find the new one", async () => {
    const [a, adminA] = await server();
    const [b, adminB] = await server(["--replicaof", a.host, String(a.port)]);
    await until("B is in step", 10_000, async () => {
      return (await adminB.info("replication")).includes("master_link_status:up");
    });
    const proxy = await StalledProxy.start(a.port);
    open.push(proxy);
    const extra = "fallback: { margin: 0.5 }";
    const pods = await Promise.all(
      [1, 2].map(() => startSidecar({ limits: LIMITS, redisUrl: proxy.url, extra })),
    );
    await gathered(pods);
    const traffic = new Traffic(pods, { limit: "api", keys: ["all"], perSecond: 15 });
    await traffic.during(4_000);

    const turnedAtMs = traffic.atMs;
    await adminB.call("REPLICAOF", "NO", "ONE");
    proxy.target = b.port;
    await adminA.call("REPLICAOF", b.host, String(b.port));
    for (const [i, pod] of pods.entries()) {
      await until(`B is told by pod ${i}`, 5_000, async () => {
        await pod.check("slow", `pod-${i}`);
        return (await consumed(adminB, "slow", `pod-${i}`)) > 0;
      });
    }
    await until("the pods are out of the fallback", 5_000, async () => {
      const states = await Promise.all(pods.map((pod) => pod.metric("aliquot_fallback_active")));
      return states.every((state) => state === 0);
    });
    expect(traffic.atMs - turnedAtMs).toBeLessThan(5_000);
    await traffic.during(4_000);
    await traffic.stop();
    await settled(pods);

    expect(traffic.failures).toEqual([]);
    const seconds = traffic.atMs / 1_000;
    expect(traffic.allowed).toBeLessThanOrEqual(20 * seconds + 20 + 10);
    expect(traffic.allowed).toBeGreaterThan(0.85 * 20 * seconds);
    expect(proxy.connections).toBe(pods.length);
    for (const pod of pods) expect(pod.output.match(/"level":"(warn|error)"/g) ?? []).toEqual([]);
  }, 60_000);

  it.each([
    {
      what: "a replica that serves no stale data",
      args: ["--replica-serve-stale-data", "no"],
      says: "MASTERDOWN",
    },
    {
      what: "a primary without replicas",
      args: ["--min-replicas-to-write", "1"],
      says: "NOREPLICAS",
    },
  ])(
    "$what is left as well, and the log says why",
    async ({ args, says }) => {
      const [odd] = await server(args);
      const [good, adminGood] = await server();
      const proxy = await StalledProxy.start(odd.port);
      open.push(proxy);
      const oddAdmin = new Redis(odd.port, odd.host, { protocol: 2 });
      open.push({ close: async () => oddAdmin.disconnect() });
      if (args[0] === "--replica-serve-stale-data") {
        await oddAdmin.call("REPLICAOF", "127.0.0.1", "1");
      }
      const pod = await startSidecar({ limits: LIMITS, redisUrl: proxy.url });
      await until("the pod has been refused", 5_000, () => pod.output.includes(says));
      proxy.target = good.port;
      await until("the pod has found the other server", 5_000, async () => {
        await pod.check("slow", "k");
        return (await consumed(adminGood, "slow", "k")) > 0;
      });
    },
    60_000,
  );
});
