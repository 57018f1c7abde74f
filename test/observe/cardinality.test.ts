/** What many keys do to the metrics page: the real engine, checks over HTTP, real scrapes. */
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { DurationCounts } from "../../src/observe/duration-counts.ts";
import { createMetrics } from "../../src/observe/metrics.ts";
import { Observation } from "../../src/observe/observation.ts";
import { listenHttp } from "../../src/server/listener.ts";
import { createOpsHandler } from "../../src/server/ops.ts";
import { limitOf } from "../server/exact-decider.ts";
import { HttpClient, serve } from "../server/http-client.ts";
import { SoleEngine } from "../support/sole-engine.ts";

const limits = Array.from({ length: 20 }, (_, i) => limitOf(`limit-${i}`, { tokens: 10 }));
const byName = new Map(limits.map((limit) => [limit.name, limit]));

function unasked(): never {
  throw new Error("not asked for");
}

let sole: SoleEngine;
let checks: HttpClient;
let scrapes: HttpClient;

beforeEach(async () => {
  sole = new SoleEngine(limits, 250_000);
  const counts = new DurationCounts();
  const served = await serve(
    {
      limit: (name) => byName.get(name),
      limits: () => limits,
      standing: (limit) => sole.engine.standing(limit),
      decide: (all) => sole.decide(all),
      report: (check) => sole.engine.report(sole.now, check),
    },
    { observeUs: (us) => counts.observeUs(us) },
  );
  const figures = (): ReturnType<typeof sole.engine.figures> => sole.engine.figures(sole.now);
  const metrics = createMetrics({
    figures,
    config: () => ({
      reloadsOk: 0,
      reloadsFailed: 0,
      lastReloadOk: true,
      lastSuccessSeconds: 1,
      hash: "h",
    }),
    forwardUnmatched: () => 3,
    descriptors: () => ({ unmatched: 0, shown: [] }),
    decisionDurations: {
      http: counts,
      uds: new DurationCounts(),
      grpc: new DurationCounts(),
      forward: new DurationCounts(),
      resp: new DurationCounts(),
    },
    reconcileDurations: new DurationCounts(),
    version: "1.2.3",
  });
  const ops = createOpsHandler({
    started: () => true,
    draining: () => false,
    identity: () => unasked(),
    engine: {
      limit: () => undefined,
      limits: () => [],
      standing: () => unasked(),
      counts: figures,
      figures,
    },
    observed: new Observation({ monotonicUs: () => 0 }),
    showKeys: () => false,
    keyDigest: () => unasked(),
    metrics: (accept) => metrics.render(accept),
    onUnexpectedError: (error) => served.faults.push(error),
  });
  const listener = await listenHttp(ops, { kind: "tcp", host: "127.0.0.1", port: 0 });
  checks = served.client;
  scrapes = new HttpClient({ port: listener.port ?? 0 });
  onTestFinished(async () => {
    scrapes.close();
    await listener.stop(1_000);
    await served.stop();
    expect(served.faults).toEqual([]);
  });
});

/** Checks so many keys, each twice with the whole burst, so that half of the checks are denied. */
async function checkKeys(count: number, afterBatch: () => Promise<void>): Promise<void> {
  const perBatch = 500;
  for (let first = 0; first < count; first += perBatch) {
    const requests = Array.from({ length: 2 * perBatch }, (_, index) => {
      const key = first + (index >> 1);
      return { limit: `limit-${key % 20}`, key: `secret-${key}`, cost: 10 };
    });
    const { status, json } = await checks.post("/v1/check/batch", { requests });
    expect(status).toBe(200);
    expect(json.results).toHaveLength(2 * perBatch);
    await afterBatch();
  }
}

interface Page {
  readonly text: string;
  readonly series: number;
  readonly tookMs: number;
}

async function scrape(): Promise<Page> {
  const startedAt = performance.now();
  const { text } = await scrapes.get("/metrics");
  const tookMs = performance.now() - startedAt;
  const series = text.split("\n").filter((line) => /^[a-z]/.test(line)).length;
  return { text, series, tookMs };
}

describe("O21 the metrics page of a pod with many keys", () => {
  it("has as many series for 100,000 keys as for 1,000, and names none of them", {
    timeout: 120_000,
  }, async () => {
    await checkKeys(1_000, async () => {});
    const few = await scrape();

    const pages: Page[] = [];
    let batches = 0;
    await checkKeys(100_000, async () => {
      batches += 1;
      if (batches % 20 === 0) pages.push(await scrape());
    });
    const many = await scrape();

    expect(many.text).toContain("aliquot_tracked_keys 100000\n");
    expect(many.text).toContain(
      'aliquot_decisions_total{limit="limit-0",outcome="denied",source="local"} 5',
    );
    expect(many.series).toBe(few.series);
    expect(many.series).toBeLessThan(1_000);
    for (const { text } of [few, ...pages, many]) {
      expect(text).not.toContain("secret");
      expect(text.length).toBeLessThan(500_000);
    }
    // The middle one of the scrapes, as other work on the machine may delay any single one.
    const times = pages.map(({ tookMs }) => tookMs).sort((a, b) => a - b);
    expect(times[Math.floor(times.length / 2)]).toBeLessThan(100);
  });
});
