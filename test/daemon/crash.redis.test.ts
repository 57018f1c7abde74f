import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../fleet/until.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { type Sidecar, startSidecar, stopSidecars } from "../support/sidecar.ts";
import { offer, type Served } from "./load.ts";
import { StoredState } from "./stored.ts";

/** Refills one token a day, so that what is missing in the store is what was consumed. */
const LIMITS = "  - { name: api, rate: 1/d, burst: 20000 }";
const EXTRA = "membership: { heartbeat: 200ms, timeout: 1s }";
const KILLS = 20;

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

const start = (podId: string): Promise<Sidecar> =>
  startSidecar({ limits: LIMITS, redisUrl: redis.url, podId, extra: EXTRA });

describe("SIGKILL of a sidecar under load", () => {
  it("twenty times blocks no other, corrupts nothing and leaves no eternal key", async () => {
    const survivors = await Promise.all([start("a"), start("b")]);
    let isOver = false;
    const keepAsking = async (sidecar: Sidecar): Promise<Served[]> => {
      const rounds: Served[] = [];
      while (!isOver) {
        rounds.push(await offer({ sidecar, limit: "api", key: "shared", perSecond: 50 }, 500));
      }
      return rounds;
    };
    const asking = survivors.map(keepAsking);
    let admittedByVictims = 0;
    for (let kill = 0; kill < KILLS; kill += 1) {
      // The same pod id each time, as when a container restarts in its pod.
      const victim = await start("victim");
      const load = offer({ sidecar: victim, limit: "api", key: "shared", perSecond: 200 }, 600);
      await new Promise((resolve) => setTimeout(resolve, 300));
      await victim.crash();
      admittedByVictims += (await load).allowed;
    }
    isOver = true;
    const rounds = (await Promise.all(asking)).flat();
    const admitted = rounds.reduce((sum, { allowed }) => sum + allowed, 0);

    expect(rounds.reduce((sum, { failed }) => sum + failed, 0)).toBe(0);
    // A check that had to ask and got no reply in 10 ms is denied: rare, but every kill is followed
    // by the start of a process that takes a core for a while.
    const denied = rounds.reduce((sum, round) => sum + round.denied, 0);
    expect(denied).toBeLessThanOrEqual(0.06 * admitted);
    for (const survivor of survivors) {
      expect(await survivor.partWithin(0.05)).toBeGreaterThanOrEqual(0.75);
    }

    // What a victim had not told is lost, which is little; nothing is counted that was not
    // admitted.
    for (const survivor of survivors) expect((await survivor.terminate()).code).toBe(0);
    const total = await stored.missing("api", "shared");
    expect(admittedByVictims).toBeGreaterThan(KILLS * 20);
    expect(total).toBeGreaterThanOrEqual(admitted + 0.3 * admittedByVictims);
    expect(total).toBeLessThanOrEqual(admitted + admittedByVictims + KILLS * 10);
    expect(await stored.eternal()).toEqual([]);
    expect((await stored.keys()).length).toBeGreaterThan(3);
  }, 120_000);

  it("is noticed by the others after the membership timeout", async () => {
    const [first, second] = await Promise.all([start("a"), start("b")]);
    const counts = async (): Promise<number> => first.metric("aliquot_live_pods");
    await until("two pods", 5_000, async () => (await counts()) === 2);
    await second.crash();
    await until("one pod", 8_000, async () => (await counts()) === 1);
    expect(await stored.members()).toHaveLength(1);
  });
});
