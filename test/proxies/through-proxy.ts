/**
 * What must hold through every proxy: the same tests, run with the real program, the configuration
 * from its document, and real sidecars.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseList } from "structured-headers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "../../fleet/until.ts";
import { freePort } from "../support/free-port.ts";
import { startRedis } from "../support/redis-server.ts";
import { type Sidecar, startSidecar, stopSidecars } from "../support/sidecar.ts";
import { App, Client, type Sent } from "./client.ts";
import type { Program } from "./program.ts";
import { documentedPolicies } from "./recipe.ts";

export interface Places {
  /** Unix socket of the sidecar. */
  readonly socket: string;
  /** Where the proxy is to listen. */
  readonly port: number;
  readonly appPort: number;
}

export interface ProxyUnderTest {
  readonly name: string;
  /** Undefined when this machine does not have the program. */
  readonly binary: string | undefined;
  /** @param closed - Refuse requests while the sidecar is away. */
  start(places: Places, closed: boolean): Promise<Program>;
  /** Status that clients get while the sidecar is away and the proxy fails closed. */
  readonly closedStatus: number;
}

/** Refills so slowly that no test sees it, except where a test wants many. */
const LIMITS = [
  "  - { name: login-per-address, rate: 1/h, burst: 3 }",
  "  - { name: api-per-key, rate: 1/h, burst: 4, overrides: [{ key: many, rate: 100000/s }] }",
].join("\n");

const KEEP_ALIVE_REQUESTS = 10_000;
const KEEP_ALIVE_CONNECTIONS = 8;

/** Longer than the recipes let the proxies wait for an answer, and then time to recover. */
const HANG_MS = 130;
const RUN_MS = 70;
const HANG_REQUESTS = 1_000;

const login = (headers: Record<string, string> = {}): Sent => ({ method: "POST", headers });
const posted = (key: string): Sent => ({
  method: "POST",
  headers: { "x-api-key": key },
  body: "the body",
});
const withKey = (key: string): Sent => ({ headers: { "x-api-key": key } });

export function describeThroughProxy(proxy: ProxyUnderTest): void {
  let folder: string;
  let socket: string;
  let app: App;
  let sidecar: Sidecar;
  let program: Program;
  let client: Client;

  async function startOne(redisUrl?: string): Promise<void> {
    sidecar = await startSidecar({
      limits: LIMITS,
      extra: documentedPolicies(),
      socket,
      ...(redisUrl !== undefined && { redisUrl }),
    });
  }

  async function open(closed: boolean): Promise<void> {
    const places = { socket, port: await freePort(), appPort: app.port };
    program = await proxy.start(places, closed);
    client = new Client(places.port);
  }

  async function shut(): Promise<void> {
    client.close();
    await program.stop();
  }

  const reason = proxy.binary === undefined ? " (skipped: it is not on this machine)" : "";
  describe.skipIf(proxy.binary === undefined)(`through ${proxy.name}${reason}`, () => {
    beforeAll(async () => {
      folder = mkdtempSync(join(tmpdir(), "aliquot-through-"));
      socket = join(folder, "http.sock");
      app = await App.start();
      await startOne();
      await open(false);
    });

    afterAll(async () => {
      await shut();
      await stopSidecars();
      await app.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    it("a request passes with RateLimit headers, one too many is told its wait", async () => {
      const before = app.requests;
      for (let left = 3; left >= 0; left -= 1) {
        const { status, text, header } = await client.send("/api/items?a=1", posted("alice"));
        expect([status, text]).toEqual([200, "POST /api/items?a=1 the body"]);
        const [[name, params] = []] = parseList(String(header("ratelimit")));
        expect([name, (params as Map<string, unknown>).get("r")]).toEqual(["api-per-key", left]);
        expect(header("ratelimit-policy")).toBe('"api-per-key";q=4;w=14400');
      }
      const denied = await client.send("/api/items", withKey("alice"));
      expect(denied.status).toBe(429);
      expect(denied.header("retry-after")).toBe("3600");
      expect(denied.header("ratelimit")).toBe('"api-per-key";r=0;t=3600');
      expect(denied.header("content-type")).toBe("application/problem+json");
      expect(JSON.parse(denied.text)).toMatchObject({ status: 429 });
      expect(app.requests - before).toBe(4);
    });

    it("what falls under no policy passes, and so do errors of the app", async () => {
      for (const status of [200, 403, 404, 429, 500, 503]) {
        const seen = await client.send(`/status/${status}`);
        expect([seen.status, seen.text]).toEqual([status, `GET /status/${status} `]);
        expect(seen.header("ratelimit")).toBeUndefined();
      }
    });

    it("forged headers, odd paths and queries gain a client nothing", async () => {
      expect(await client.statuses(4, "/api/login", login())).toEqual([200, 200, 200, 429]);
      const forged: readonly [string, Record<string, string>][] = [
        ["/api/login", { "x-forwarded-for": "198.51.100.1" }],
        ["/api/login", { "x-forwarded-for": "198.51.100.2, 198.51.100.3" }],
        ["/api/login", { "x-forwarded-uri": "/other", "x-forwarded-method": "GET" }],
        ["/api/login", { "x-original-uri": "/other", "x-original-method": "GET" }],
        ["/api/login", { "x-ratelimit-deny-status": "200" }],
        ["/api/login?policy=api&x=/v1/forward/@api", {}],
        ["/api/login?", {}],
        ["/api//login", {}],
        ["/api/./login", {}],
        ["/api/%6cogin", {}],
      ];
      for (const [path, headers] of forged) {
        const { status } = await client.send(path, login(headers));
        expect([path, headers, status >= 400]).toEqual([path, headers, true]);
      }
      expect((await client.send("/api/login", withKey("bob"))).status).toBe(200);
    });

    it(`${KEEP_ALIVE_REQUESTS} requests over kept connections pass without an error`, async () => {
      const before = app.requests;
      const many = new Client(program.port, KEEP_ALIVE_CONNECTIONS);
      const statuses = await many.crowd(KEEP_ALIVE_REQUESTS, "/api/x", () => withKey("many"));
      many.close();
      expect([...statuses]).toEqual([[200, KEEP_ALIVE_REQUESTS]]);
      // Caddy 2.6 with kept connections sent some of its sub-requests to the application.
      expect([app.requests - before, app.astray]).toEqual([KEEP_ALIVE_REQUESTS, 0]);
    });

    it("a sidecar that hangs now and then stops no request, and none goes astray", async () => {
      const before = app.requests;
      const many = new Client(program.port, KEEP_ALIVE_CONNECTIONS);
      let hanging = true;
      const hangs = (async () => {
        while (hanging) {
          sidecar.signal("SIGSTOP");
          await sleep(HANG_MS);
          sidecar.signal("SIGCONT");
          await sleep(RUN_MS);
        }
      })();
      const statuses = await many.crowd(HANG_REQUESTS, "/api/x", () => withKey("many"));
      hanging = false;
      await hangs;
      many.close();
      expect([...statuses]).toEqual([[200, HANG_REQUESTS]]);
      expect([app.requests - before, app.astray]).toEqual([HANG_REQUESTS, 0]);
    });

    it("requests pass while the sidecar is away, and are limited when it is back", async () => {
      await stopSidecars();
      for (let i = 0; i < 6; i += 1) {
        const { status, text } = await client.send("/api/x?a=1", posted("open"));
        expect([status, text]).toEqual([200, "POST /api/x?a=1 the body"]);
      }
      const redis = await startRedis();
      try {
        await startOne(redis.url);
        await until("the proxy asks again", 10_000, async () => {
          const { header } = await client.send("/api/x", withKey("probe"));
          return header("ratelimit") !== undefined;
        });
        expect(await denialsOf("back")).toBeGreaterThan(0);
        await redis.stop();
        expect(await client.statuses(20, "/api/x", withKey("many"))).toEqual(Array(20).fill(200));
        expect(await client.statuses(5, "/api/x", withKey("back"))).toEqual(Array(5).fill(429));
      } finally {
        await redis.dispose();
      }
    });

    it(`the closed variant refuses with ${proxy.closedStatus} while it is away`, async () => {
      await shut();
      await open(true);
      expect((await client.send("/api/x", withKey("closed"))).status).not.toBe(proxy.closedStatus);
      await stopSidecars();
      const before = app.requests;
      expect(await client.statuses(5, "/api/x", withKey("closed"))).toEqual(
        Array(5).fill(proxy.closedStatus),
      );
      expect(app.requests).toBe(before);
      await startOne();
      await until("requests pass again", 10_000, async () => {
        return (await client.send("/api/x", withKey("closed"))).status === 200;
      });
    });
  });

  /** Denials among twice as many requests as the burst. */
  async function denialsOf(key: string): Promise<number> {
    const statuses = await client.statuses(8, "/api/x", withKey(key));
    return statuses.filter((status) => status === 429).length;
  }
}
