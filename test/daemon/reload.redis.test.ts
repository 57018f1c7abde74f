import { writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../fleet/until.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { type Sidecar, startSidecar, stopSidecars } from "../support/sidecar.ts";
import { IN_FORCE_WITHIN_MS, untilReloads } from "./reloading.ts";
import { StoredState } from "./stored.ts";

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

/** Refills one token a day, so that what is missing in the store is what was consumed. */
function limit(name: string, burst: number): string {
  return `  - { name: ${name}, mode: hybrid, rate: 1/d, burst: ${burst} }`;
}

/** Tokens left after one check was admitted; on a busy machine the store may answer it too late. */
async function leftAfterOne(sidecar: Sidecar, name: string, cost = 1): Promise<number> {
  let left = Number.NaN;
  await until(`${name} admits ${cost}`, IN_FORCE_WITHIN_MS, async () => {
    const { allowed, remaining } = await sidecar.check(name, "k", cost);
    left = remaining;
    return allowed;
  });
  return left;
}

describe("O14 a reload beside a store", () => {
  it("reports what a removed limit admitted, and it comes back with what was left", async () => {
    const both = `${limit("kept", 20_000)}\n${limit("gone", 20_000)}`;
    const sidecar = await startSidecar({
      limits: both,
      redisUrl: redis.url,
      extra: "reconcile: { interval: 200ms }",
    });
    let admitted = 0;
    await until("60 are admitted", 10_000, async () => {
      if ((await sidecar.check("gone", "k")).allowed) admitted += 1;
      return admitted === 60;
    });
    writeFileSync(sidecar.config, sidecar.yaml({ limits: limit("kept", 20_000) }));
    await untilReloads(sidecar, { ok: 1 });
    expect((await sidecar.ask("gone", "k")).status).toBe(404);
    await until("all is reported", IN_FORCE_WITHIN_MS, async () => {
      return Math.round(await stored.missing("gone", "k")) === 60;
    });

    writeFileSync(sidecar.config, sidecar.yaml({ limits: both }));
    await untilReloads(sidecar, { ok: 2 });
    const left = await leftAfterOne(sidecar, "gone");
    expect(left).toBeLessThanOrEqual(20_000 - 61);
    expect(left).toBeGreaterThan(20_000 - 161);
  }, 60_000);

  it("keeps what an unchanged limit has consumed, and scales what a changed one has left", async () => {
    const sidecar = await startSidecar({
      limits: `${limit("kept", 1_000)}\n${limit("halved", 1_000)}`,
      redisUrl: redis.url,
    });
    expect(await leftAfterOne(sidecar, "kept", 400)).toBe(600);
    expect(await leftAfterOne(sidecar, "halved", 400)).toBe(600);
    writeFileSync(
      sidecar.config,
      sidecar.yaml({ limits: `${limit("kept", 1_000)}\n${limit("halved", 500)}` }),
    );
    await untilReloads(sidecar, { ok: 1 });
    expect(await leftAfterOne(sidecar, "kept")).toBe(599);
    expect(await leftAfterOne(sidecar, "halved")).toBe(299);
  }, 60_000);
});
