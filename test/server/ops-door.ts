/** An ops listener in process, with figures and a clock that the test sets. */
import { onTestFinished } from "vitest";
import { type Figures, noReconciles, Tally } from "../../src/core/tally.ts";
import { Observation } from "../../src/observe/observation.ts";
import { listenHttp } from "../../src/server/listener.ts";
import { createOpsHandler, type ObservedEngine, type OpsView } from "../../src/server/ops.ts";
import type { Identity } from "../../src/server/status.ts";
import { keyDigest } from "../../src/store/redis/keys.ts";
import { limitOf } from "./exact-decider.ts";
import { HttpClient } from "./http-client.ts";

const limits = [limitOf("api", { burst: 50, tokens: 5 })];

const CONFIG: Identity["config"] = {
  hash: "abc",
  inForceSinceSeconds: 1_795_996_800,
  reloadsOk: 2,
  reloadsFailed: 1,
  lastReload: "failed",
  lastReloadSeconds: 1_795_996_860,
  problems: [{ source: "a.yaml", line: 3, field: "limits[0].rate", message: "is wrong" }],
  needsRestart: ["redis"],
};

const NO_WORKERS = { workers: 0, up: 0, restarts: 0 };

export class OpsDoor {
  /** Of the listener, once it is open. */
  port = 0;
  private nowUs = 0;
  hasStarted = true;
  isDraining = false;
  store: "embedded" | "redis" = "redis";
  areKeysShown = false;
  /** To be set before the listener is opened. */
  workers: { workers: number; up: number; restarts: number } | undefined;
  figures: Figures = {
    limits: [{ name: "api", tally: new Tally(), unreconciled: 3, debt: 0, share: 0.25 }],
    trackedKeys: 7,
    evictedKeys: 1,
    lostTokens: 0,
    pods: 4,
    listing: { pods: 5, isCurrent: false },
    fallbackActive: false,
    storeUp: true,
    reconciled: { ...noReconciles(), ok: 5, timeout: 1, keys: 9 },
  };
  render: OpsView["metrics"] = async (accept) => {
    return { contentType: "text/plain", body: `accept ${accept}\n` };
  };
  /** Times that every key was looked at. */
  scans = 0;
  readonly faults: unknown[] = [];
  readonly observed: Observation = new Observation({ monotonicUs: () => this.nowUs });

  close = async (): Promise<void> => {};

  /** Opens the listener; it is closed when the test is over. */
  async open(): Promise<HttpClient> {
    const handler = createOpsHandler(this.view());
    const listener = await listenHttp(handler, { kind: "tcp", host: "127.0.0.1", port: 0 });
    this.port = listener.port ?? 0;
    const client = new HttpClient({ port: this.port });
    this.close = async () => {
      client.close();
      await listener.stop(100);
    };
    onTestFinished(() => this.close());
    return client;
  }

  /** Counts decisions of the one limit. */
  count(outcome: "allowed" | "denied", cost = 1, times = 1): void {
    const decision = { allowed: outcome === "allowed", wouldDeny: false, source: "fallback" };
    for (let i = 0; i < times; i += 1) {
      this.figures.limits[0]?.tally.count(decision as Parameters<Tally["count"]>[0], cost);
    }
  }

  /** Lets a second pass. */
  passSecond(): void {
    this.nowUs += 1_000_000;
    this.observed.look(this.figures);
  }

  private view(): OpsView {
    const { observed } = this;
    const identity = { version: "1.2.3", fleet: "checkout", podId: "pod-1", uptimeSeconds: 12.3 };
    return {
      started: () => this.hasStarted,
      draining: () => this.isDraining,
      identity: () => ({ ...identity, config: CONFIG, store: this.store }),
      ...(this.workers !== undefined && { workers: () => this.workers ?? NO_WORKERS }),
      engine: this.engine(),
      observed,
      showKeys: () => this.areKeysShown,
      keyDigest,
      metrics: (accept) => this.render(accept),
      onUnexpectedError: (error) => this.faults.push(error),
    };
  }

  private engine(): ObservedEngine {
    return {
      limit: (name) => limits.find((limit) => limit.name === name),
      limits: () => limits,
      standing: () => ({ mode: "hybrid", reason: "a test", intervalUs: 100_000, boundTokens: 42 }),
      counts: () => this.figures,
      figures: () => {
        this.scans += 1;
        return this.figures;
      },
    };
  }
}
