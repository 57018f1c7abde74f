/** Envoy's rate limit filter over the gRPC socket, with the files of docs/proxies/envoy.md. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { until } from "../../fleet/until.ts";
import { freePort } from "../support/free-port.ts";
import { startRedis } from "../support/redis-server.ts";
import { type Sidecar, startSidecar, stopSidecars } from "../support/sidecar.ts";
import { App, Client, type Sent } from "./client.ts";
import { envoyBinary, startEnvoy } from "./envoy-program.ts";
import type { Program } from "./program.ts";
import { placed, recipeFile } from "./recipe.ts";

const recipe = recipeFile("envoy.md", "envoy-ratelimit.yaml");

let folder: string;
let socket: string;
let rules: string;
let app: App;
let program: Program;
let client: Client;

const withKey = (key: string): Sent => ({ headers: { "x-api-key": key } });

function startOne(redisUrl?: string): Promise<Sidecar> {
  return startSidecar({
    limits: "  - { name: unused, rate: 1/s }",
    extra: `envoy: { domains: [${rules}] }`,
    grpcSocket: socket,
    ...(redisUrl !== undefined && { redisUrl }),
  });
}

async function open(text: string, change = (whole: string) => whole): Promise<void> {
  const port = await freePort();
  const config = placed(text, {
    "/run/aliquot/grpc.sock": socket,
    "address: 0.0.0.0, port_value: 8080": `address: 127.0.0.1, port_value: ${port}`,
    "port_value: 3000": `port_value: ${app.port}`,
    "timeout: 0.02s": "timeout: 1s", // a noisy machine is not what is tested here
  });
  program = await startEnvoy(change(config), port);
  client = new Client(port);
}

async function reopen(...args: Parameters<typeof open>): Promise<void> {
  client.close();
  await program.stop();
  await open(...args);
}

const reason = envoyBinary === undefined ? " (skipped: it is not on this machine)" : "";
describe.skipIf(envoyBinary === undefined)(`through Envoy's rate limit filter${reason}`, () => {
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "aliquot-rls-"));
    socket = join(folder, "grpc.sock");
    rules = join(folder, "edge.yaml");
    writeFileSync(rules, recipeFile("envoy.md", "edge.yaml"));
    app = await App.start();
    await startOne();
    await open(recipe);
  });

  afterAll(async () => {
    client.close();
    await program.stop();
    await stopSidecars();
    await app.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it("nested descriptors deny with 429 and the headers of DRAFT_VERSION_03", async () => {
    for (let left = 4; left >= 0; left -= 1) {
      const { status, header } = await client.send("/api/login");
      expect([status, header("x-ratelimit-remaining")]).toEqual([200, String(left)]);
      expect(header("x-ratelimit-limit")).toMatch(/^5, 5;w=3600/);
    }
    const before = app.requests;
    const denied = await client.send("/api/login");
    expect(denied.status).toBe(429);
    expect(denied.header("x-envoy-ratelimited")).toBe("true");
    expect(denied.header("x-ratelimit-remaining")).toBe("0");
    expect(Number(denied.header("x-ratelimit-reset"))).toBeGreaterThan(600);
    expect(app.requests).toBe(before);
    expect((await client.send("/api/other")).status).toBe(200);
  });

  it("a forged address or a query that asks for another policy gains nothing", async () => {
    const forged: Sent = { headers: { "x-forwarded-for": "198.51.100.9" } };
    expect((await client.send("/api/login", forged)).status).toBe(429);
    expect((await client.send("//api/./login")).status).toBe(429);
  });

  it("what a descriptor adds is what it costs", async () => {
    expect(await client.statuses(5, "/export/all")).toEqual([200, 200, 200, 200, 429]);
  });

  it("a limit in shadow mode denies nothing", async () => {
    expect(await client.statuses(5, "/trial")).toEqual(Array(5).fill(200));
  });

  it("10,000 requests over kept connections pass without an error", async () => {
    const many = new Client(program.port, 8);
    // Each under a key of its own, so that none is ever denied.
    const statuses = await many.crowd(10_000, "/api/x", (index) => withKey(`k${index}`));
    many.close();
    expect([...statuses]).toEqual([[200, 10_000]]);
  });

  it("requests pass while the sidecar is away, and are limited as soon as it is back", async () => {
    await stopSidecars();
    expect(await client.statuses(3, "/api/login")).toEqual([200, 200, 200]);
    const redis = await startRedis();
    try {
      await startOne(redis.url);
      await until("Envoy asks again", 20_000, async () => {
        return (
          (await client.send("/api/x", withKey("a"))).header("x-ratelimit-limit") !== undefined
        );
      });
      const statuses = await client.statuses(12, "/api/login");
      expect(statuses.at(-1)).toBe(429);
      await redis.stop();
      expect(await client.statuses(5, "/api/login")).toEqual(Array(5).fill(429));
      expect(await client.statuses(5, "/anything")).toEqual(Array(5).fill(200));
    } finally {
      await redis.dispose();
    }
  });

  it("requests are refused with 503 while it is away when failures are to deny", async () => {
    await reopen(placed(recipe, { "failure_mode_deny: false": "failure_mode_deny: true" }));
    expect((await client.send("/api/x", withKey("b"))).status).toBe(200);
    await stopSidecars();
    expect(await client.statuses(3, "/api/x", withKey("b"))).toEqual([503, 503, 503]);
    await startOne();
    await until("requests pass again", 20_000, async () => {
      return (await client.send("/api/x", withKey("b"))).status === 200;
    });
  });

  it("the cluster, the filter and the rate limits of the EnvoyFilter work in Envoy", async () => {
    await reopen(recipe, withEnvoyFilter);
    expect(await client.statuses(6, "/api/login")).toEqual([200, 200, 200, 200, 200, 429]);
  });
});

interface Patch {
  readonly applyTo: string;
  readonly patch: { readonly value: unknown };
}

/** A configuration of Envoy with what Istio's EnvoyFilter would put into it, over the socket. */
function withEnvoyFilter(text: string): string {
  const filter = parse(recipeFile("envoy.md", "istio-ratelimit.yaml"));
  const patches: readonly Patch[] = filter.spec.configPatches;
  const valueFor = (target: string): unknown =>
    patches.find(({ applyTo }) => applyTo === target)?.patch.value;
  const { static_resources: statics } = parse(text);
  const manager = statics.listeners[0].filter_chains[0].filters[0].typed_config;
  const [host] = manager.route_config.virtual_hosts;
  host.routes = [{ match: { prefix: "/" }, route: { cluster: "app" } }];
  Object.assign(host, valueFor("VIRTUAL_HOST"));
  manager.http_filters[0] = valueFor("HTTP_FILTER");
  statics.clusters[1] = valueFor("CLUSTER");
  return placed(JSON.stringify({ static_resources: statics }), {
    '"socket_address":{"address":"127.0.0.1","port_value":8791}': `"pipe":{"path":"${socket}"}`,
    '"timeout":"0.02s"': '"timeout":"1s"',
  });
}
