import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import type { Figures } from "../../src/core/tally.ts";
import { Tally } from "../../src/core/tally.ts";
import { Observation } from "../../src/observe/observation.ts";
import { listenHttp } from "../../src/server/listener.ts";
import { createOpsHandler, type OpsView } from "../../src/server/ops.ts";
import { keyDigest } from "../../src/store/redis/keys.ts";
import { limitOf } from "./exact-decider.ts";
import { HttpClient } from "./http-client.ts";

const figures: Figures = {
  limits: [{ name: "api", tally: new Tally(), unreconciled: 3, debt: 0, share: 0.25 }],
  trackedKeys: 7,
  evictedKeys: 1,
  lostTokens: 0,
  pods: 4,
  listing: { pods: 5, isCurrent: false },
  fallbackActive: false,
  storeUp: true,
  reconciled: { ok: 5, timeout: 1, unreachable: 0, refused: 0, malformed: 0, keys: 9 },
};

const limits = [limitOf("api", { burst: 50, tokens: 5 })];

let client: HttpClient;
let nowUs: number;
let state: {
  started: boolean;
  draining: boolean;
  figures: Figures;
  store: "embedded" | "redis";
  showKeys: boolean;
};
let observation: Observation;
let scans: number;
let faults: unknown[];
let metrics: OpsView["metrics"];

beforeEach(async () => {
  state = { started: true, draining: false, figures, store: "redis", showKeys: false };
  scans = 0;
  nowUs = 0;
  observation = new Observation({ monotonicUs: () => nowUs });
  faults = [];
  metrics = async (accept) => ({ contentType: "text/plain", body: `accept ${accept}\n` });
  const handler = createOpsHandler({
    started: () => state.started,
    draining: () => state.draining,
    identity: () => ({
      version: "1.2.3",
      fleet: "checkout",
      podId: "pod-1",
      uptimeSeconds: 12.3,
      config: {
        hash: "abc",
        inForceSinceSeconds: 1_795_996_800,
        reloadsOk: 2,
        reloadsFailed: 1,
        lastReload: "failed",
        lastReloadSeconds: 1_795_996_860,
        problems: [{ source: "a.yaml", line: 3, field: "limits[0].rate", message: "is wrong" }],
        needsRestart: ["redis"],
      },
      store: state.store,
    }),
    engine: {
      limit: (name) => limits.find((limit) => limit.name === name),
      limits: () => limits,
      standing: () => ({ mode: "hybrid", reason: "a test", intervalUs: 100_000, boundTokens: 42 }),
      counts: () => state.figures,
      figures: () => {
        scans += 1;
        return state.figures;
      },
    },
    observed: observation,
    showKeys: () => state.showKeys,
    keyDigest,
    metrics: (accept) => metrics(accept),
    onUnexpectedError: (error) => faults.push(error),
  });
  const listener = await listenHttp(handler, { kind: "tcp", host: "127.0.0.1", port: 0 });
  client = new HttpClient({ port: listener.port ?? 0 });
  onTestFinished(async () => {
    client.close();
    await listener.stop(100);
  });
});

const away: Figures = { ...figures, storeUp: false, fallbackActive: true };

async function statuses(): Promise<number[]> {
  const probes = ["/livez", "/startupz", "/readyz"];
  return Promise.all(probes.map(async (path) => (await client.get(path)).status));
}

describe("probes", () => {
  it("all pass on a started pod", async () => {
    expect(await statuses()).toEqual([200, 200, 200]);
  });

  it("hold back start and readiness, not liveness, until the pod has started", async () => {
    state.started = false;
    expect(await statuses()).toEqual([200, 503, 503]);
  });

  it("take readiness away while draining, and nothing else", async () => {
    state.draining = true;
    expect(await statuses()).toEqual([200, 200, 503]);
  });

  it("do not depend on the store", async () => {
    state.figures = away;
    expect(await statuses()).toEqual([200, 200, 200]);
  });

  it("list the components when asked", async () => {
    state.figures = away;
    const { status, text } = await client.get("/readyz?verbose");
    expect(status).toBe(200);
    expect(text.split("\n")).toEqual([
      "[+] started",
      "[+] not draining",
      "[!] store: redis does not answer (readiness does not depend on it)",
      "[!] fallback: active",
      "ok",
      "",
    ]);
    expect((await client.get("/readyz")).text).toBe("ok\n");
  });

  it("say which component is not ready", async () => {
    state = { ...state, draining: true, store: "embedded" };
    const { status, text } = await client.get("/readyz?verbose=1");
    expect(status).toBe(503);
    expect(text).toContain("[-] draining\n[+] store: embedded\n");
    expect(text.endsWith("not ok\n")).toBe(true);
  });

  it("answer HEAD without a body", async () => {
    const { status, text } = await client.send("HEAD", "/readyz");
    expect([status, text]).toEqual([200, ""]);
  });
});

describe("/status", () => {
  it("tells who the pod is and how it stands", async () => {
    figures.limits[0]?.tally.count(
      { wouldDeny: false, allowed: true, source: "fallback" } as Parameters<Tally["count"]>[0],
      5,
    );
    const { headers, json } = await client.get("/status");
    expect(headers["content-type"]).toBe("application/json");
    expect(json).toMatchObject({
      version: "1.2.3",
      fleet: "checkout",
      pod: "pod-1",
      started: true,
      draining: false,
      ready: true,
      config: {
        hash: "abc",
        loaded_at: "2026-11-30T00:00:00.000Z",
        reloads: { ok: 2, failed: 1 },
        last_reload: {
          outcome: "failed",
          at: "2026-11-30T00:01:00.000Z",
          problems: [{ source: "a.yaml", line: 3, field: "limits[0].rate", message: "is wrong" }],
        },
        needs_restart: ["redis"],
      },
      store: { kind: "redis", up: true },
      fallback_active: false,
      live_pods: 4,
      tracked_keys: 7,
      limits: [
        {
          name: "api",
          share_ratio: 0.25,
          unreconciled_tokens: 3,
          decisions: { allowed: 1, denied: 0, shadow_denied: 0 },
          tokens: { allowed: 5, denied: 0, shadow_denied: 0 },
        },
      ],
    });
  });
});

describe("/metrics", () => {
  it("passes on what the scraper accepts", async () => {
    const { text } = await client.send("GET", "/metrics", undefined, { accept: "x/y" });
    expect(text).toBe("accept x/y\n");
  });

  it("answers 500 and reports the fault when they cannot be made", async () => {
    metrics = () => Promise.reject(new Error("secret"));
    const { status, text } = await client.get("/metrics");
    expect(status).toBe(500);
    expect(text).not.toContain("secret");
    expect(faults).toHaveLength(1);
  });
});

describe("the ops listener", () => {
  it("lists its pages at /", async () => {
    const { status, text } = await client.get("/");
    expect(status).toBe(200);
    for (const page of ["/livez", "/startupz", "/readyz", "/metrics", "/status"]) {
      expect(text).toContain(page);
      expect((await client.get(page)).status).toBe(200);
    }
  });

  it.each(["/v1/check", "/v1/limits", "/livez/", "/admin"])("has nothing at %s", async (path) => {
    const { status, headers } = await client.get(path);
    expect(status).toBe(404);
    expect(headers["content-type"]).toBe("application/problem+json");
  });

  it.each(["POST", "PUT", "DELETE"])("refuses to write with %s", async (method) => {
    const { status, headers } = await client.send(method, "/status", "{}");
    expect([status, headers.allow]).toEqual([405, "GET, HEAD, OPTIONS"]);
  });
});
