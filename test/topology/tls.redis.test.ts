import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../fleet/until.ts";
import { freePort } from "../support/free-port.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { type Sidecar, startSidecar, stopSidecars } from "../support/sidecar.ts";
import { TlsAuthority } from "../support/tls-authority.ts";
import { consumed } from "./bookkeeping.ts";

const LIMITS = "  - { name: slow, rate: 1/d, burst: 1000 }";

/** Where the sidecar finds its files; a test may replace them while it runs. */
let folder: string;
let authority: TlsAuthority;
let other: TlsAuthority;
let redis: RedisServer;
let admin: Redis;
let tlsPort: number;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "aliquot-secrets-"));
  authority = new TlsAuthority();
  other = new TlsAuthority("another authority");
  const server = authority.issue("redis.test", { dns: ["redis.test"], ip: ["127.0.0.1"] });
  tlsPort = await freePort();
  // The plain port is for the test itself; the sidecars get the other one.
  const files = ["--tls-cert-file", server.certFile, "--tls-key-file", server.keyFile];
  const trust = ["--tls-ca-cert-file", authority.caFile, "--tls-auth-clients", "yes"];
  redis = await startRedis({ args: ["--tls-port", String(tlsPort), ...files, ...trust] });
  admin = new Redis(redis.port, redis.host, { protocol: 2 });
  const client = authority.issue("client");
  copyFileSync(authority.caFile, join(folder, "ca.crt"));
  copyFileSync(client.certFile, join(folder, "client.crt"));
  copyFileSync(client.keyFile, join(folder, "client.key"));
});

afterEach(async () => {
  await stopSidecars();
  admin.disconnect();
  await redis.dispose();
  authority.dispose();
  other.dispose();
  rmSync(folder, { recursive: true, force: true });
});

const CLIENT = ["cert_file: client.crt", "key_file: client.key"];

function start(tls: readonly string[], host = "127.0.0.1"): Promise<Sidecar> {
  const files = tls.map((line) => line.replace(/file: /, `file: ${folder}/`)).join(", ");
  const redisPart = `redis:\n  url: rediss://${host}:${tlsPort}/0\n  tls: { ${files} }`;
  return startSidecar({ limits: LIMITS, extra: redisPart });
}

const isUp = async (pod: Sidecar): Promise<boolean> => (await pod.metric("aliquot_store_up")) === 1;

describe("TLS to Redis", () => {
  it("works with a private authority and a client certificate", async () => {
    const pod = await start(["ca_file: ca.crt", ...CLIENT]);
    await until("the pod is connected", 5_000, () => isUp(pod));
    await pod.report("slow", "k", 3);
    await until("Redis is told", 3_000, async () => (await consumed(admin, "slow", "k")) > 2.9);
  });

  it("checks the server's name, which server_name may tell", async () => {
    const wrong = await start(["ca_file: ca.crt", "server_name: other.test", ...CLIENT]);
    await until("it is said", 5_000, () => /Hostname\/IP does not match/.test(wrong.output));
    const right = await start(["ca_file: ca.crt", "server_name: redis.test", ...CLIENT]);
    await until("the pod is connected", 5_000, () => isUp(right));
  });

  it.each([
    { what: "an authority that is not trusted", tls: CLIENT, says: /self.signed certificate/ },
    {
      what: "another authority of ours",
      tls: ["ca_file: other.crt", ...CLIENT],
      says: /self.signed certificate|unable to verify|signature failure/,
    },
    { what: "no client certificate", tls: ["ca_file: ca.crt"], says: /certificate required/i },
  ])("$what: the log says so, and the pod decides by itself", async ({ tls, says }) => {
    copyFileSync(other.caFile, join(folder, "other.crt"));
    const pod = await start(tls);
    const verdict = await pod.check("slow", "k");
    expect(verdict).toMatchObject({ allowed: true, source: "fallback", degraded: true });
    await until("it is said", 8_000, () => says.test(pod.output));
    expect(await pod.metric("aliquot_fallback_active")).toBe(1);
    expect(await pod.probe("/readyz")).toBe(200);
    expect(pod.output.match(/"level":"warn"/g)).toHaveLength(1);
  });

  it("survives files that are being replaced, also when they do not fit for a while", async () => {
    const pod = await start(["ca_file: ca.crt", ...CLIENT]);
    await until("the pod is connected", 5_000, () => isUp(pod));
    const fresh = authority.issue("fresh");
    // A certificate and a key that do not belong together: no connection can even be begun.
    copyFileSync(fresh.certFile, join(folder, "client.crt"));
    await admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    await until("the pod has noticed", 8_000, () => /key values mismatch/.test(pod.output));
    writeFileSync(join(folder, "client.crt"), "torn");
    await new Promise((resolve) => setTimeout(resolve, 1_500)); // another attempt fails meanwhile
    copyFileSync(fresh.certFile, join(folder, "client.crt"));
    copyFileSync(fresh.keyFile, join(folder, "client.key"));
    await until("the pod is connected again", 8_000, () => isUp(pod));
  });
});
