import { describe, expect, it, onTestFinished } from "vitest";
import type { LiveConfig, Standing } from "../../src/config/reload.ts";
import { type Figures, noReconciles } from "../../src/core/tally.ts";
import { Observation } from "../../src/observe/observation.ts";
import { openOps } from "../../src/ops-desk.ts";
import type { ObservedEngine } from "../../src/server/ops.ts";
import { HttpClient } from "../server/http-client.ts";

const FIGURES: Figures = {
  limits: [],
  trackedKeys: 0,
  evictedKeys: 0,
  lostTokens: 0,
  pods: 1,
  listing: undefined,
  fallbackActive: false,
  storeUp: true,
  reconciled: noReconciles(),
};

const ENGINE: ObservedEngine = {
  limit: () => undefined,
  limits: () => [],
  standing: () => ({ mode: "hybrid", reason: "", intervalUs: 0, boundTokens: 0 }),
  counts: () => FIGURES,
  figures: () => FIGURES,
};

/** An ops listener over two workers, which count how often they are asked. */
async function openDesk() {
  let nowUs = 0;
  const observation = new Observation({ monotonicUs: () => nowUs });
  const asked = { times: 0 };
  const config = { fleet: "f", podId: "p", ops: { showKeys: false } };
  const standing: Standing = {
    hash: "h",
    inForceSinceSeconds: 1,
    reloadsOk: 0,
    reloadsFailed: 0,
    lastReload: "none",
    lastReloadOk: true,
    lastReloadSeconds: undefined,
    lastSuccessSeconds: 1,
    problems: [],
    needsRestart: [],
  };
  const faults: unknown[] = [];
  const address = { host: "127.0.0.1", port: 0 };
  const listener = await openOps(address, {
    version: "1",
    live: { config, standing: () => standing } as unknown as LiveConfig,
    store: "embedded",
    engine: ENGINE,
    observation,
    started: () => true,
    draining: () => false,
    forwardUnmatched: () => 0,
    descriptors: () => ({ unmatched: 0, shown: [] }),
    onFault: (error) => faults.push(error),
    workers: {
      figures: () => ({ workers: 2, up: 2, restarts: 0 }),
      processes: () => [],
      refresh: async () => {
        asked.times += 1;
      },
    },
  });
  const client = new HttpClient({ port: listener.port ?? 0 });
  onTestFinished(async () => {
    client.close();
    await listener.stop(100);
    expect(faults).toEqual([]);
  });
  const passSecond = (): void => {
    nowUs += 1_000_000;
    observation.look(FIGURES);
  };
  return { client, asked, passSecond };
}

describe("the ops listener of several workers", () => {
  it("asks them once in a second for those who watch, however many these are", async () => {
    const { client, asked, passSecond } = await openDesk();
    const watchers = Array.from({ length: 5 }, (_, n) => `/status?history=${n}`);
    for (const path of watchers) expect((await client.get(path)).status).toBe(200);
    expect(asked.times).toBe(1);
    passSecond();
    for (const path of watchers) await client.get(path);
    expect(asked.times).toBe(2);
  });

  it("asks them anew for each scrape, and for probes not at all", async () => {
    const { client, asked } = await openDesk();
    for (const path of ["/metrics", "/status", "/status?x=history"]) await client.get(path);
    expect(asked.times).toBe(3);
    for (const path of ["/livez", "/readyz", "/"]) await client.get(path);
    expect(asked.times).toBe(3);
  });
});
