import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { until } from "../../fleet/until.ts";
import { untilReloads } from "../daemon/reloading.ts";
import { startRedis } from "../support/redis-server.ts";
import {
  type Sidecar,
  type SidecarOptions,
  startSidecar,
  stopSidecars,
} from "../support/sidecar.ts";

afterEach(stopSidecars);

const INLINE = "resp: { inline_limits: true }";
/** Also on a busy machine it shall be the store that decides. */
const PATIENT = `${INLINE}\ndecision_timeout: 1s`;
const LIMITS = [
  "  - { name: exact, rate: 1/h, burst: 20, mode: exact }",
  "  - { name: wide, rate: 1000/s, burst: 1000 }",
].join("\n");

interface Pod {
  readonly sidecar: Sidecar;
  readonly socket: string;
  readonly client: Redis;
}

async function startPod(options: Partial<SidecarOptions> = {}): Promise<Pod> {
  const folder = mkdtempSync(join(tmpdir(), "aliquot-resp-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const socket = join(folder, "resp.sock");
  const env = { ALIQUOT_LISTEN_RESP_SOCKET: socket };
  const sidecar = await startSidecar({ limits: LIMITS, env, extra: INLINE, ...options });
  const client = new Redis({ path: socket, lazyConnect: true, retryStrategy: () => null });
  onTestFinished(() => client.disconnect());
  await client.connect();
  return { sidecar, socket, client };
}

/** Asks one check so often in one pipeline. @returns For each reply whether it was admitted. */
async function askMany(client: Redis, times: number, ...command: string[]): Promise<boolean[]> {
  const pipeline = client.pipeline();
  const [name = "", ...args] = command;
  for (let i = 0; i < times; i += 1) pipeline.call(name, ...args);
  const replies = (await pipeline.exec()) ?? [];
  return replies.map(([error, reply]) => {
    if (error !== null) throw error;
    return (reply as number[])[0] === 0;
  });
}

function admitted(verdicts: readonly boolean[]): number {
  return verdicts.filter((isAdmitted) => isAdmitted).length;
}

describe("a fleet that is asked over RESP", () => {
  it("keeps one limit, whether it is configured or the caller brings it", async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const pods = [
      await startPod({ redisUrl: redis.url, podId: "a", extra: PATIENT }),
      await startPod({ redisUrl: redis.url, podId: "b", extra: PATIENT }),
    ];
    // A pod that thinks it is alone keeps what the other must not give away.
    await until("both pods are counted by both", 10_000, async () => {
      const counts = pods.map(({ sidecar }) => sidecar.metric("aliquot_live_pods"));
      return (await Promise.all(counts)).every((count) => count === 2);
    });
    const command = ["ALIQUOT.CHECK", "exact", "k"];
    const verdicts = await Promise.all(pods.map(({ client }) => askMany(client, 30, ...command)));
    expect(admitted(verdicts.flat())).toBe(20);
    // In order: what a pipeline admits comes before what it denies.
    for (const each of verdicts) expect(each).toEqual([...each].sort((a, b) => +b - +a));
    // Three tokens are too few to split, so that these are decided in Redis as well.
    const brought = ["CL.THROTTLE", "k", "2", "1", "3600"];
    const [first, second] = [
      await askMany(pods[0]?.client as Redis, 2, ...brought),
      await askMany(pods[1]?.client as Redis, 2, ...brought),
    ];
    expect([...first, ...second]).toEqual([true, true, true, false]);
  });
});

describe("a sidecar with a RESP socket", () => {
  it("says where it is, counts its checks, and removes it when it stops", async () => {
    const { sidecar, socket, client } = await startPod();
    expect(sidecar.output).toContain(`checks on  ${socket} (Redis protocol)`);
    expect(admitted(await askMany(client, 500, "ALIQUOT.CHECK", "wide", "k"))).toBe(500);
    const metrics = await sidecar.metrics();
    const count = 'aliquot_decision_duration_seconds_count{transport="resp"}';
    expect(metrics.get(count)).toBe(500);
    const decisions = 'aliquot_decisions_total{limit="wide",outcome="allowed",source="local"}';
    expect(metrics.get(decisions)).toBe(500);
    expect(await sidecar.terminate()).toEqual({ code: 0, signal: null });
    expect(existsSync(socket)).toBe(false);
  });

  it("follows a new file that allows callers to bring limits, and one that does not", async () => {
    const { sidecar, client } = await startPod({ extra: "resp: { inline_limits: false }" });
    const ask = () => client.call("CL.THROTTLE", "k", "0", "1", "3600");
    await expect(ask()).rejects.toThrow("callers may bring no limits here");
    await reload(sidecar, INLINE, 1);
    expect(await ask()).toEqual([0, 1, 0, -1, 3_600]);
    await reload(sidecar, "resp: { inline_limits: true, max_inline_limits: 1 }", 2);
    expect(await ask()).toMatchObject([1, 1, 0, 3_600, 3_600]);
    await expect(client.call("CL.THROTTLE", "k", "1", "1", "1")).rejects.toThrow(
      "1 limits already",
    );
    await reload(sidecar, "", 3);
    await expect(ask()).rejects.toThrow("callers may bring no limits here");
  });

  async function reload(sidecar: Sidecar, extra: string, times: number): Promise<void> {
    writeFileSync(sidecar.config, sidecar.yaml({ extra }));
    sidecar.signal("SIGHUP");
    await untilReloads(sidecar, { ok: times });
  }
});
