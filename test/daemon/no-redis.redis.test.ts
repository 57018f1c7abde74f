import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { until } from "../../fleet/until.ts";
import { freePort } from "../support/free-port.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { type Sidecar, startSidecar, stopSidecars } from "../support/sidecar.ts";
import { offer } from "./load.ts";

/** Alone and without Redis: a quarter of 40/s, and of a burst of 40. */
const LIMITS = "  - { name: api, rate: 40/s, burst: 40, fallback: { margin: 0.25, max_pods: 1 } }";
const LOAD_MS = 8_000;
/** Half a second on a quiet machine, two at most; the rest is for a machine with other work. */
const UP_WITHIN_MS = 20_000;
const PATIENCE = { timeout: 90_000 };

/** Takes connections and counts them, and does what a broken network does with them. */
class DeafServer {
  attempts = 0;
  readonly port: number;
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();

  static async listen(manner: "silent" | "resets"): Promise<DeafServer> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new DeafServer(server, manner);
  }

  private constructor(server: Server, manner: "silent" | "resets") {
    this.server = server;
    this.port = (server.address() as AddressInfo).port;
    server.on("connection", (socket) => {
      this.attempts += 1;
      this.sockets.add(socket);
      socket.on("error", () => {});
      if (manner === "resets") socket.resetAndDestroy();
    });
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

let redis: RedisServer | undefined;
let deaf: DeafServer | undefined;

afterEach(async () => {
  await stopSidecars();
  await redis?.dispose();
  await deaf?.close();
  redis = undefined;
  deaf = undefined;
});

/** Starts a pod and expects it to be up, live and ready soon, whatever its Redis does. */
async function startQuickly(redisUrl: string): Promise<Sidecar> {
  const sidecar = await startSidecar({ limits: LIMITS, redisUrl, unready: true });
  await until("live", UP_WITHIN_MS, async () => (await sidecar.probe("/livez")) === 200);
  await until("ready", UP_WITHIN_MS, async () => (await sidecar.probe("/readyz")) === 200);
  expect(await sidecar.probe("/startupz")).toBe(200);
  return sidecar;
}

/** Offers 100/s and expects quick answers that keep to the stricter limit, and a pod that stays. */
async function expectFallback(sidecar: Sidecar): Promise<void> {
  const begun = performance.now();
  const served = await offer({ sidecar, limit: "api", key: "k", perSecond: 100 }, LOAD_MS);
  const seconds = (performance.now() - begun) / 1_000;
  expect(served.failed).toBe(0);
  expect(served.allowed).toBeLessThanOrEqual(10 + 10 * seconds);
  expect(served.allowed).toBeGreaterThanOrEqual(0.9 * 10 * seconds);
  // Checks that waited for this Redis would take 50 ms and more, all of them; on a quiet machine
  // more than 99 % take less than 10 ms, on a busy one every tenth process switch hits a check.
  expect(await sidecar.partWithin(0.01)).toBeGreaterThanOrEqual(0.75);
  expect(await sidecar.sum("aliquot_decisions_total", 'source="fallback"')).toBe(
    served.allowed + served.denied,
  );
  expect(await sidecar.metric("aliquot_fallback_active")).toBe(1);
  expect(await sidecar.metric("aliquot_store_up")).toBe(0);
  expect(sidecar.alive).toBe(true);
  const warnings = sidecar.output.split("\n").filter((line) => line.includes('"warn"'));
  expect(warnings.length).toBeLessThanOrEqual(2);
}

/** Both pods know each other within five seconds and have left the fallback. */
async function expectJoined(pods: readonly Sidecar[]): Promise<void> {
  await until("every pod counts the fleet", 5_000, async () => {
    for (const pod of pods) {
      const metrics = await pod.metrics();
      if (metrics.get("aliquot_live_pods") !== pods.length) return false;
      if (metrics.get("aliquot_fallback_active") !== 0) return false;
    }
    return true;
  });
}

describe("O23 no Redis at start-up", () => {
  it(
    "(1) refused: starts, keeps to the fallback, and joins when Redis comes",
    PATIENCE,
    async () => {
      const port = await freePort();
      const url = `redis://127.0.0.1:${port}/0`;
      const pods = await Promise.all([startQuickly(url), startQuickly(url)]);
      await expectFallback(pods[0]);
      redis = await startRedis({ port });
      await expectJoined(pods);
    },
  );

  it("(1) refused: tries to connect about once a second and not more", PATIENCE, async () => {
    deaf = await DeafServer.listen("resets");
    await expectFallback(await startQuickly(`redis://127.0.0.1:${deaf.port}/0`));
    expect(deaf.attempts).toBeGreaterThanOrEqual(3);
    expect(deaf.attempts).toBeLessThanOrEqual(LOAD_MS / 1_000 + 4);
  });

  it("(2) a name that does not resolve: starts and keeps to the fallback", PATIENCE, async () => {
    await expectFallback(await startQuickly("redis://no-such-host.invalid:6379/0"));
  });

  it(
    "(3) a server that never answers: starts, keeps to the fallback, joins later",
    PATIENCE,
    async () => {
      deaf = await DeafServer.listen("silent");
      const url = `redis://127.0.0.1:${deaf.port}/0`;
      const pods = await Promise.all([startQuickly(url), startQuickly(url)]);
      await expectFallback(pods[0]);
      expect(deaf.attempts).toBeGreaterThanOrEqual(6);
      expect(deaf.attempts).toBeLessThanOrEqual(2 * (LOAD_MS / 1_000 + 4));
      const { port } = deaf;
      await deaf.close();
      redis = await startRedis({ port });
      await expectJoined(pods);
    },
  );

  it(
    "liveness and readiness of a fleet do not notice that Redis stops and comes back",
    PATIENCE,
    async () => {
      const server = await startRedis();
      redis = server;
      const pods = await Promise.all([1, 2, 3].map(() => startQuickly(server.url)));
      await expectJoined(pods);
      await server.stop();
      const deadline = performance.now() + 6_000;
      while (performance.now() < deadline) {
        for (const pod of pods) {
          expect(await pod.probe("/livez")).toBe(200);
          expect(await pod.probe("/readyz")).toBe(200);
        }
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      expect(await pods[0]?.metric("aliquot_fallback_active")).toBe(1);
      await server.start();
      await expectJoined(pods);
    },
  );
});
