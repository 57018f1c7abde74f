import { beforeEach, describe, expect, it } from "vitest";
import { type Figures, type LimitFigures, Tally } from "../../src/core/tally.ts";
import { DurationCounts } from "../../src/observe/duration-counts.ts";
import { prefersOpenMetrics } from "../../src/observe/exposition.ts";
import { createMetrics, type Metrics, type MetricsView } from "../../src/observe/metrics.ts";

let figures: Figures;
let view: MetricsView;
let metrics: Metrics;

function limitFigures(name: string): LimitFigures {
  return { name, tally: new Tally(), unreconciled: 0, debt: 0, share: 1 };
}

beforeEach(() => {
  figures = {
    limits: [limitFigures("api"), limitFigures("login")],
    trackedKeys: 12,
    evictedKeys: 3,
    pods: 4,
    listing: { pods: 5, isCurrent: false },
    fallbackActive: true,
    storeUp: false,
    lostTokens: 6,
    reconciled: { ok: 9, timeout: 8, unreachable: 7, refused: 6, malformed: 5, keys: 44 },
  };
  view = {
    figures: () => figures,
    config: () => ({
      reloadsOk: 2,
      reloadsFailed: 1,
      lastReloadOk: false,
      lastSuccessSeconds: 1_700_000_000,
      hash: "h1",
    }),
    forwardUnmatched: () => 3,
    descriptors: () => ({ unmatched: 0, shown: [] }),
    decisionDurations: {
      http: new DurationCounts(),
      uds: new DurationCounts(),
      grpc: new DurationCounts(),
      forward: new DurationCounts(),
      resp: new DurationCounts(),
    },
    reconcileDurations: new DurationCounts(),
    version: "1.2.3",
  };
  metrics = createMetrics(view);
});

/** The samples of our own metrics by series, as a scraper reads them. */
async function scrape(accept?: string): Promise<Map<string, number>> {
  const { body } = await metrics.render(accept);
  const lines = body.split("\n").filter((line) => line.startsWith("aliquot_"));
  return new Map(
    lines.map((line) => {
      const space = line.lastIndexOf(" ");
      return [line.slice(0, space), Number(line.slice(space + 1))];
    }),
  );
}

/** Names and types as the contract lists them. */
const CONTRACT = {
  decisions_total: "counter",
  tokens_total: "counter",
  decision_duration_seconds: "histogram",
  live_pods: "gauge",
  listed_pods: "gauge",
  listing_up: "gauge",
  share_ratio: "gauge",
  reconcile_total: "counter",
  reconcile_duration_seconds: "histogram",
  reconcile_keys_total: "counter",
  unreconciled_tokens: "gauge",
  debt_tokens: "gauge",
  over_admitted_tokens_total: "counter",
  damaged_keys_total: "counter",
  lost_keys_total: "counter",
  fallback_active: "gauge",
  store_up: "gauge",
  tracked_keys: "gauge",
  evicted_keys_total: "counter",
  config_reloads_total: "counter",
  config_last_success_timestamp_seconds: "gauge",
  config_last_reload_successful: "gauge",
  config_info: "gauge",
  build_info: "gauge",
};

describe("the metrics page", () => {
  it.each(Object.entries(CONTRACT))("has %s, a %s, with a help text", async (name, type) => {
    const { body } = await metrics.render(undefined);
    expect(body).toContain(`# TYPE aliquot_${name} ${type}\n`);
    expect(body).toMatch(new RegExp(`# HELP aliquot_${name} \\S+`));
  });

  it("has the default metrics of the process", async () => {
    const { body, contentType } = await metrics.render(undefined);
    expect(contentType).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(body).toContain("process_cpu_user_seconds_total ");
    expect(body).toContain("nodejs_eventloop_lag_seconds ");
  });

  it("has a zero for every series of a limit that decided nothing", async () => {
    const series = await scrape();
    for (const limit of ["api", "login"]) {
      for (const outcome of ["allowed", "denied", "shadow_denied"]) {
        expect(series.get(`aliquot_tokens_total{limit="${limit}",outcome="${outcome}"}`)).toBe(0);
        for (const source of ["local", "store", "fallback"]) {
          const labels = `limit="${limit}",outcome="${outcome}",source="${source}"`;
          expect(series.get(`aliquot_decisions_total{${labels}}`)).toBe(0);
        }
      }
      expect(series.get(`aliquot_over_admitted_tokens_total{limit="${limit}"}`)).toBe(0);
    }
  });

  it("reads the figures anew at each scrape", async () => {
    await scrape();
    const [api] = figures.limits;
    const denied = { allowed: false, wouldDeny: false, source: "store" };
    api?.tally.count(denied as Parameters<Tally["count"]>[0], 5);
    figures = { ...figures, limits: [{ ...api, unreconciled: 7, share: 0.25 } as LimitFigures] };
    const series = await scrape();
    const labels = 'limit="api",outcome="denied"';
    expect(series.get(`aliquot_decisions_total{${labels},source="store"}`)).toBe(1);
    expect(series.get(`aliquot_tokens_total{${labels}}`)).toBe(5);
    expect(series.get('aliquot_unreconciled_tokens{limit="api"}')).toBe(7);
    expect(series.get('aliquot_share_ratio{limit="api"}')).toBe(0.25);
    expect([...series.keys()].filter((name) => name.includes("login"))).toEqual([]);
  });

  it("has what the fleet, the store and the configuration tell", async () => {
    const series = await scrape();
    expect(series.get("aliquot_live_pods")).toBe(4);
    expect(series.get("aliquot_listed_pods")).toBe(5);
    expect(series.get("aliquot_listing_up")).toBe(0);
    expect(series.get("aliquot_fallback_active")).toBe(1);
    expect(series.get("aliquot_store_up")).toBe(0);
    expect(series.get("aliquot_tracked_keys")).toBe(12);
    expect(series.get("aliquot_evicted_keys_total")).toBe(3);
    expect(series.get("aliquot_lost_tokens_total")).toBe(6);
    expect(series.get('aliquot_reconcile_total{outcome="malformed"}')).toBe(5);
    expect(series.get("aliquot_reconcile_keys_total")).toBe(44);
    expect(series.get('aliquot_config_reloads_total{outcome="failed"}')).toBe(1);
    expect(series.get("aliquot_config_last_success_timestamp_seconds")).toBe(1_700_000_000);
    expect(series.get("aliquot_config_last_reload_successful")).toBe(0);
    expect(series.get('aliquot_config_info{hash="h1"}')).toBe(1);
    const build = `aliquot_build_info{version="1.2.3",node="${process.version}"}`;
    expect(series.get(build)).toBe(1);
  });

  it("tells of no listing where there is none", async () => {
    figures = { ...figures, listing: undefined };
    const series = [...(await scrape()).keys()];
    expect(series.filter((name) => name.includes("list"))).toEqual([]);
  });

  it("counts the requests that fell under no policy", async () => {
    expect((await scrape()).get("aliquot_forward_unmatched_total")).toBe(3);
  });

  it("shows one state in one scrape, asking for the figures once", async () => {
    let asked = 0;
    metrics = createMetrics({
      ...view,
      figures: () => {
        asked += 1;
        return figures;
      },
    });
    await scrape();
    expect(asked).toBe(1);
  });

  it("has histograms whose buckets add up", async () => {
    for (const us of [1, 50, 51, 20_000, 2_000_000]) view.decisionDurations.uds.observeUs(us);
    const series = await scrape();
    const bucket = (le: string): number | undefined =>
      series.get(`aliquot_decision_duration_seconds_bucket{transport="uds",le="${le}"}`);
    expect(["0.00005", "0.0001", "0.01", "0.02", "1", "+Inf"].map(bucket)).toEqual([
      2, 3, 3, 4, 4, 5,
    ]);
    expect(series.get('aliquot_decision_duration_seconds_count{transport="uds"}')).toBe(5);
    expect(series.get('aliquot_decision_duration_seconds_sum{transport="uds"}')).toBeCloseTo(
      2.020102,
      9,
    );
    expect(series.get('aliquot_decision_duration_seconds_count{transport="grpc"}')).toBe(0);
    expect(series.get("aliquot_reconcile_duration_seconds_count")).toBe(0);
  });
});

describe("OpenMetrics", () => {
  const accept =
    "application/openmetrics-text;version=1.0.0;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";

  it("is what a scraper that prefers it gets, with the same samples, in any order", async () => {
    const first = await scrape(accept);
    const prometheus = await scrape();
    const second = await scrape(accept);
    expect([...first.keys()].sort()).toEqual([...prometheus.keys()].sort());
    expect([...second]).toEqual([...first]);
    const { body, contentType } = await metrics.render(accept);
    expect(contentType).toBe("application/openmetrics-text; version=1.0.0; charset=utf-8");
    expect(body.endsWith("# EOF\n")).toBe(true);
    expect(body).toContain("# TYPE aliquot_decisions counter\n");
    expect(body).toContain("\naliquot_decisions_total{");
    expect(body).not.toContain("_total_total");
  });

  it("reads the figures anew as well", async () => {
    await scrape(accept);
    figures = { ...figures, limits: [limitFigures("other")], pods: 9 };
    const series = await scrape(accept);
    expect(series.get("aliquot_live_pods")).toBe(9);
    expect([...series.keys()].some((name) => name.includes('"api"'))).toBe(false);
    expect([...series.keys()].some((name) => name.includes('"other"'))).toBe(true);
  });

  it.each([
    [undefined, false],
    ["*/*", false],
    ["text/plain", false],
    [accept, true],
    ["application/openmetrics-text", true],
    ["Application/OpenMetrics-Text; version=0.0.1", true],
    ["application/openmetrics-text;q=0", false],
    ["application/openmetrics-text;q=0.2,text/plain;q=0.8", false],
    ["application/openmetrics-text;q=bad", false],
    ["", false],
  ])("for Accept %j: %s", (header, preferred) => {
    expect(prefersOpenMetrics(header)).toBe(preferred);
  });
});
