import { beforeEach, describe, expect, it } from "vitest";
import type { HttpClient } from "./http-client.ts";
import { OpsDoor } from "./ops-door.ts";

let client: HttpClient;
let door: OpsDoor;

beforeEach(async () => {
  door = new OpsDoor();
  client = await door.open();
});

async function statuses(): Promise<number[]> {
  const probes = ["/livez", "/startupz", "/readyz"];
  return Promise.all(probes.map(async (path) => (await client.get(path)).status));
}

describe("probes", () => {
  it("all pass on a started pod", async () => {
    expect(await statuses()).toEqual([200, 200, 200]);
  });

  it("hold back start and readiness, not liveness, until the pod has started", async () => {
    door.hasStarted = false;
    expect(await statuses()).toEqual([200, 503, 503]);
  });

  it("take readiness away while draining, and nothing else", async () => {
    door.isDraining = true;
    expect(await statuses()).toEqual([200, 200, 503]);
  });

  it("do not depend on the store", async () => {
    door.figures = { ...door.figures, storeUp: false, fallbackActive: true };
    expect(await statuses()).toEqual([200, 200, 200]);
  });

  it("list the components when asked", async () => {
    door.figures = { ...door.figures, storeUp: false, fallbackActive: true };
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
    door.isDraining = true;
    door.store = "embedded";
    const { status, text } = await client.get("/readyz?verbose=1");
    expect(status).toBe(503);
    expect(text).toContain("[-] draining\n[+] store: embedded\n");
    expect(text.endsWith("not ok\n")).toBe(true);
  });

  it("of several workers pass while one is up, and tell how many are", async () => {
    door = new OpsDoor();
    door.workers = { workers: 3, up: 2, restarts: 4 };
    client = await door.open();
    expect((await client.get("/readyz?verbose")).text).toContain("[!] workers: 2 of 3 up\n");
    expect((await client.get("/status")).json).toMatchObject({
      workers: { configured: 3, up: 2, restarts: 4 },
    });
    expect(await statuses()).toEqual([200, 200, 200]);
    door.workers.up = 0;
    expect(await statuses()).toEqual([200, 200, 503]);
    expect((await client.get("/readyz?verbose")).text).toContain("[-] workers: 0 of 3 up\n");
  });

  it("answer HEAD without a body", async () => {
    const { status, text } = await client.send("HEAD", "/readyz");
    expect([status, text]).toEqual([200, ""]);
  });
});

describe("/status", () => {
  it("tells who the pod is and how it stands", async () => {
    door.count("allowed", 5);
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
    door.render = () => Promise.reject(new Error("secret"));
    const { status, text } = await client.get("/metrics");
    expect(status).toBe(500);
    expect(text).not.toContain("secret");
    expect(door.faults).toHaveLength(1);
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
