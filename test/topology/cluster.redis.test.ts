import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { RedisCluster } from "../../fleet/redis-cluster.ts";
import { until } from "../../fleet/until.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { type Sidecar, startSidecar, stopSidecars } from "../support/sidecar.ts";
import { admitted, consumed, consumedOver, gathered, settled, stateName } from "./bookkeeping.ts";
import { Traffic } from "./traffic.ts";

const LIMITS = [
  "  - { name: slow, rate: 1/d, burst: 100000 }",
  "  - { name: api, rate: 100/s, burst: 100 }",
  "  - { name: slow-leased, rate: 1/d, burst: 10000, mode: leased }",
  "  - { name: slow-exact, rate: 1/d, burst: 10000, mode: exact }",
].join("\n");
const ODD_KEYS = ["a", "{a}", "user:{1}:x", "x}y", "{}", "long".repeat(50)];
const KEYS = [...ODD_KEYS, ...Array.from({ length: 44 }, (_, i) => `key-${i}`)];

const STRICT_KEYS = KEYS.slice(0, 20);

let cluster: RedisCluster;

beforeAll(async () => {
  cluster = await RedisCluster.start(startRedis);
}, 120_000);

let running: Sidecar[] = [];

afterEach(async () => {
  // Pods that vanish would count as members of the next test's fleet for a while.
  await Promise.all(running.map((pod) => pod.terminate()));
  await stopSidecars();
});

afterAll(() => cluster.dispose());

async function startPods(count: number): Promise<Sidecar[]> {
  const extra = `${cluster.yaml}\nfallback: { margin: 0.5 }`;
  const pods = await Promise.all(
    Array.from({ length: count }, () => startSidecar({ limits: LIMITS, extra })),
  );
  running = pods;
  await gathered(pods);
  return pods;
}

function slotOf(key: string): Promise<number> {
  return cluster.client.cluster("KEYSLOT", stateName("slow", key));
}

/** Tokens that the store holds against the pods, once nothing is under way any more. */
async function expectEqualBooks(pods: readonly Sidecar[], keys: readonly string[], before: number) {
  await settled(pods);
  const stored = (await consumedOver(cluster.client, "slow", keys)) - before;
  expect(stored).toBe(await admitted(pods, "slow"));
  for (const pod of pods) expect(await pod.metric("aliquot_lost_tokens_total")).toBe(0);
}

const STRICT = ["slow-leased", "slow-exact"] as const;

/** Load on the strict limits beside that of a test, and what the store has taken from them. */
class StrictLoad {
  readonly traffics: readonly Traffic[];
  private readonly pods: readonly Sidecar[];
  private readonly before: readonly number[];

  private constructor(pods: readonly Sidecar[], before: readonly number[]) {
    this.pods = pods;
    this.before = before;
    this.traffics = STRICT.map((limit) => {
      return new Traffic(pods, { limit, keys: STRICT_KEYS, perSecond: 15 });
    });
  }

  static async start(pods: readonly Sidecar[]): Promise<StrictLoad> {
    return new StrictLoad(pods, await taken());
  }

  /** Resolves when every answer is there and everything is told. */
  async stop(): Promise<void> {
    await Promise.all(this.traffics.map((traffic) => traffic.stop()));
    await settled(this.pods);
    expect(this.traffics.flatMap(({ failures }) => failures)).toEqual([]);
  }

  /**
   * Tokens of each limit that were taken and not admitted: for a check that could not wait, or
   * leased and never used. What was admitted had been taken before, so it is never below 0.
   */
  async unused(): Promise<number[]> {
    const after = await taken();
    const counts = STRICT.map(async (limit, i) => {
      return (after[i] ?? 0) - (this.before[i] ?? 0) - (await admitted(this.pods, limit));
    });
    return Promise.all(counts);
  }
}

function taken(): Promise<number[]> {
  return Promise.all(STRICT.map((limit) => consumedOver(cluster.client, limit, STRICT_KEYS)));
}

describe("O8 keys of all slots on a Redis Cluster", () => {
  it("are each counted exactly, whatever bytes they hold", async () => {
    const owners = await Promise.all(
      KEYS.map(async (key) => cluster.ownerOf(await slotOf(key), cluster.nodes[0] as RedisServer)),
    );
    expect(new Set(owners).size).toBe(3);
    const pods = await startPods(2);
    for (const pod of pods) {
      for (const key of KEYS) {
        let allowed = 0;
        while (allowed < 7) if ((await pod.check("slow", key)).allowed) allowed += 1;
      }
    }
    await settled(pods);
    for (const key of KEYS) {
      expect([key, await consumed(cluster.client, "slow", key)]).toEqual([
        key,
        expect.closeTo(14, 1),
      ]);
    }
    for (const pod of pods) {
      expect(pod.output).not.toMatch(/CROSSSLOT|warn/);
      expect(await pod.sum("aliquot_reconcile_total", 'outcome="refused"')).toBe(0);
    }
  }, 60_000);

  it("decide in the pods when scripts are forbidden: never unlimited, never below 0", async () => {
    const pods = await startPods(2);
    await cluster.everywhere("ACL", "SETUSER", "default", "-eval", "-evalsha");
    const started = performance.now();
    const traffic = new Traffic(pods, { limit: "api", keys: ["blocked"], perSecond: 200 });
    await until("the fallback decides", 8_000, async () => {
      const states = await Promise.all(pods.map((pod) => pod.metric("aliquot_fallback_active")));
      return states.every((state) => state === 1);
    });
    const activeAtMs = traffic.atMs;
    await traffic.during(3_000);
    await traffic.stop();
    await cluster.everywhere("ACL", "SETUSER", "default", "+@all");
    const seconds = (performance.now() - started) / 1_000;
    expect(traffic.failures).toEqual([]);
    expect(traffic.allowed).toBeLessThan(100 + 100 * seconds);
    const inFallback = traffic.allowedBetween(activeAtMs + 1_000, activeAtMs + 3_000);
    expect(inFallback).toBeGreaterThan(0.7 * 100);
    expect(inFallback).toBeLessThan(1.3 * 100); // half of the rate for two seconds
    for (const { verdict } of traffic.answers) expect(verdict.remaining).toBeGreaterThanOrEqual(0);
    for (const pod of pods) expect(pod.output).toMatch(/NOPERM/);
  }, 60_000);
});

describe("a Redis Cluster that changes under load", () => {
  const offered = { limit: "slow", keys: KEYS, perSecond: 60 };

  it("moves a slot: no caller notices, and every token is counted once", async () => {
    const before = await consumedOver(cluster.client, "slow", KEYS);
    const pods = await startPods(2);
    const strict = await StrictLoad.start(pods);
    const traffic = new Traffic(pods, offered);
    await traffic.during(1_500);
    const slot = await slotOf("a");
    const from = (await cluster.ownerOf(slot, cluster.nodes[0] as RedisServer)) as RedisServer;
    const to = cluster.nodes.slice(0, 3).find((node) => node !== from) as RedisServer;
    // Half of the slot's keys are on either side for a while: scripts are sent from pillar to post.
    await cluster.migrate(slot, from, to, () => traffic.during(1_500));
    expect(await cluster.ownerOf(slot, to)).toBe(to);
    await traffic.during(1_500);
    await Promise.all([traffic.stop(), strict.stop()]);
    expect(traffic.failures).toEqual([]);
    await expectEqualBooks(pods, KEYS, before);
    // A strict limit does not believe what another server held; it takes the slot's keys for spent.
    for (const unused of await strict.unused()) expect(unused).toBeGreaterThanOrEqual(0);
    expect(await cluster.admin(to).exists(stateName("slow", "a"))).toBe(1);
  }, 60_000);

  it("hangs in part: the other keys go on, and nothing is lost or counted twice", async () => {
    const before = await consumedOver(cluster.client, "slow", KEYS);
    const pods = await startPods(2);
    const strict = await StrictLoad.start(pods);
    const traffic = new Traffic(pods, offered);
    await traffic.during(1_000);
    const [node] = cluster.nodes as [RedisServer];
    node.pause();
    await traffic.during(800); // shorter than the cluster needs to fail over
    node.resume();
    await traffic.during(2_000);
    await Promise.all([traffic.stop(), strict.stop()]);
    expect(traffic.failures).toEqual([]);
    await expectEqualBooks(pods, KEYS, before);
    for (const [i, unused] of (await strict.unused()).entries()) {
      const { answers, allowed } = strict.traffics[i] as Traffic;
      expect(unused).toBeGreaterThanOrEqual(0);
      // A lease may hold what its key needs for a second or so; nearly all of it is used.
      const denied = answers.length - allowed;
      expect(unused).toBeLessThanOrEqual(denied + STRICT_KEYS.length * pods.length);
      expect(allowed).toBeGreaterThan(answers.length / 2);
    }
  }, 60_000);

  it("fails over: no caller notices, and nothing is counted twice", async () => {
    const before = await consumedOver(cluster.client, "slow", KEYS);
    const pods = await startPods(2);
    const strict = await StrictLoad.start(pods);
    const traffic = new Traffic(pods, offered);
    await traffic.during(1_500);
    const slot = await slotOf("a");
    const asked = cluster.nodes[3] as RedisServer;
    const dying = (await cluster.ownerOf(slot, asked)) as RedisServer;
    const survivor = cluster.nodes.find((node) => node !== dying) as RedisServer;
    const stoppedAtMs = traffic.atMs;
    await dying.stop();
    await until("a replica has taken over", 20_000, async () => {
      return (await cluster.ownerOf(slot, survivor)) !== dying;
    });
    const tookOverAtMs = traffic.atMs;
    await until("the pods reach all slots again", 8_000, async () => {
      const states = await Promise.all(pods.map((pod) => pod.metric("aliquot_fallback_active")));
      return states.every((state) => state === 0);
    });
    expect(traffic.atMs - tookOverAtMs).toBeLessThan(8_000);
    await Promise.all([traffic.stop(), strict.stop()]);
    expect(traffic.failures).toEqual([]);
    const stored = (await consumedOver(cluster.client, "slow", KEYS)) - before;
    const told = await admitted(pods, "slow");
    expect(stored).toBeLessThanOrEqual(told);
    // What the old primary had taken and not passed on: the traffic of a moment.
    const atRisk = traffic.allowedBetween(stoppedAtMs - 1_000, stoppedAtMs);
    expect(stored).toBeGreaterThanOrEqual(told - atRisk);
    for (const unused of await strict.unused()) expect(unused).toBeGreaterThanOrEqual(0);
  }, 60_000);
});
