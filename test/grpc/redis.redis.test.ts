/** Envoy's rate limit service while Redis is there, hangs, and is back. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Client } from "@grpc/grpc-js";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../fleet/until.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { type Sidecar, startSidecar, stopSidecars } from "../support/sidecar.ts";
import { call, connect, OK, OVER_LIMIT, request } from "./rate-limit-door.ts";

/** Far more than the 10 ms of a decision, far less than any timeout of Redis or a client. */
const SLACK_MS = 500;

let folder: string;
let redis: RedisServer;
let sidecar: Sidecar;
let client: Client;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "aliquot-envoy-"));
  writeFileSync(
    join(folder, "d.yaml"),
    `domain: d
descriptors:
  - { key: wide, rate_limit: { unit: second, requests_per_unit: 1000 } }
  - { key: small, rate_limit: { unit: hour, requests_per_unit: 3 } }
  - key: strict
    rate_limit: { unit: hour, requests_per_unit: 100 }
    aliquot: { fallback: closed }
`,
  );
  redis = await startRedis();
  sidecar = await startSidecar({
    limits: "  - { name: api, rate: 1/h, burst: 1000 }",
    redisUrl: redis.url,
    grpcSocket: join(folder, "grpc.sock"),
    extra: `envoy: { domains: ["${folder}/d.yaml"] }`,
  });
  client = connect(join(folder, "grpc.sock"));
});

afterEach(async () => {
  client.close();
  await stopSidecars();
  await redis.dispose();
  rmSync(folder, { recursive: true, force: true });
});

/** Time of a call in ms, whatever it answers. */
async function timed(key: string): Promise<number> {
  const began = performance.now();
  await call(client, request(key)).catch(() => {});
  return performance.now() - began;
}

describe("ShouldRateLimit with a Redis", () => {
  it("admits no more than the burst of a limit that is decided in the store", async () => {
    const seen: number[] = [];
    for (let i = 0; i < 20; i += 1) {
      seen.push((await call(client, request("small=a"))).overallCode);
    }
    const admitted = seen.filter((code) => code === OK).length;
    // On a busy machine a reply may come too late; then its token is spent for nothing.
    expect(admitted).toBeGreaterThan(0);
    expect(admitted).toBeLessThanOrEqual(3);
    expect(seen.slice(-10)).toEqual(Array(10).fill(OVER_LIMIT));
  });

  it("answers in time for keys never seen, while Redis hangs", async () => {
    await call(client, request("wide=warm"));
    redis.pause();
    const took: number[] = [];
    for (let i = 0; i < 100; i += 1) {
      took.push(await timed(`wide=${i}`), await timed(`small=${i}`));
    }
    expect(Math.max(...took)).toBeLessThan(SLACK_MS);
    await until("the fallback is active", 5_000, async () => {
      return (await sidecar.metric("aliquot_fallback_active")) === 1;
    });
    await expect(call(client, request("strict=a"))).rejects.toMatchObject({ code: 14 });
    expect((await call(client, request("wide=a"))).overallCode).toBe(OK);
    redis.resume();
    await until("the strict limit decides again", 10_000, async () => {
      const answer = await call(client, request("strict=a")).catch(() => undefined);
      return answer?.overallCode === OK;
    });
  });
});
