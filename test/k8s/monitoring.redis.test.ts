/** Alerts and dashboard next to what a running sidecar tells: queries ask for what is there. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "../../fleet/until.ts";
import { DnsServer } from "../support/dns-server.ts";
import { startRedis } from "../support/redis-server.ts";
import { type Sidecar, startSidecar, stopSidecars } from "../support/sidecar.ts";
import { find, objectsOf } from "./manifest-files.ts";
import { isSelected, readQuery } from "./promql.ts";
import { ALERTS, dashboard, withChoices } from "./queries.ts";

/** Labels that Prometheus gives to what it scrapes by k8s/monitoring/pod-monitor.yaml. */
const TARGET = {
  namespace: "checkout",
  pod: "checkout-1",
  container: "aliquot",
  aliquot_fleet: "checkout",
};

type Labels = Readonly<Record<string, string>>;

const isMissing = async (sidecar: Sidecar): Promise<boolean> =>
  Number.isNaN(await sidecar.metric("aliquot_listed_pods"));

/** Every series of the sidecar with its labels, by the metric's name. */
let series: Map<string, Labels[]>;

beforeAll(async () => {
  const redis = await startRedis();
  const limits = "  - { name: api, rate: 100/s, burst: 200 }";
  const dns = new DnsServer();
  await dns.start();
  dns.set("fleet.test", 1);
  const resolver = `127.0.0.1:${dns.port}`;
  const extra = `membership: { source: dns, service: fleet.test, resolver: "${resolver}" }`;
  const sidecar = await startSidecar({ redisUrl: redis.url, limits, extra });
  // Only then does it say how many pods are listed.
  await until("the pods are listed", 10_000, async () => !(await isMissing(sidecar)));
  series = new Map([["up", [TARGET]]]);
  for (const sample of (await sidecar.metrics()).keys()) {
    const [, name = "", text = ""] = /^(\w+)(?:\{(.*)\})?$/.exec(sample) ?? [];
    const labels = [...text.matchAll(/(\w+)="([^"]*)"/g)].map(([, label, value]) => [label, value]);
    const all = { ...TARGET, ...Object.fromEntries(labels) } as Labels;
    series.set(name, [...(series.get(name) ?? []), all]);
  }
  await stopSidecars();
  await dns.dispose();
  redis.destroy();
});

afterAll(stopSidecars);

/** What a query asks for that no series has. */
function missing(text: string): string[] {
  const { selectors, groupedBy } = readQuery(text);
  if (selectors.length === 0) return [`nothing is asked for: ${text}`];
  const problems = selectors.flatMap(({ metric, matchers }) => {
    const there = series.get(metric);
    if (there === undefined) return [`no metric ${metric}`];
    return matchers.flatMap((matcher) => {
      const values = there.map((labels) => labels[matcher.label]);
      if (!values.some((value) => value !== undefined)) {
        return [`${metric} has no label ${matcher.label}`];
      }
      const isFound = values.some((value) => value !== undefined && isSelected(matcher, value));
      return isFound ? [] : [`${metric} has no ${matcher.label} like ${matcher.value}`];
    });
  });
  const known = new Set(
    selectors.flatMap(({ metric }) => (series.get(metric) ?? []).flatMap(Object.keys)),
  );
  const strangers = groupedBy.filter((label) => !known.has(label));
  return [...problems, ...strangers.map((label) => `no label ${label} to group by`)];
}

const DASHBOARD = dashboard();
const PANELS = DASHBOARD.panels.filter(({ type }) => type !== "row");

describe("the alerts", () => {
  it.each(ALERTS.map(({ alert, expr }) => [alert, expr]))(
    "ask for what is there: %s",
    (_, expr) => {
      expect(missing(expr)).toEqual([]);
    },
  );

  it.each(ALERTS.map((alert) => [alert.alert, alert] as const))(
    "name only labels that the result has: %s",
    (_name, { expr, annotations }) => {
      const named = [...annotations.summary.matchAll(/\$labels\.(\w+)/g)].map(([, name]) => name);
      const { groupedBy } = readQuery(expr);
      const has = groupedBy.length > 0 ? groupedBy : Object.keys(TARGET);
      for (const name of named) expect(has).toContain(name);
      expect(named.length).toBeGreaterThan(0);
    },
  );

  it.each(ALERTS.map((alert) => [alert.alert, alert] as const))(
    "have a runbook that says what it is, what to look at and what to do: %s",
    (name, { annotations }) => {
      const [path = "", anchor] = annotations.runbook_url.split("#");
      expect(anchor).toBe(name.toLowerCase());
      const sections = readFileSync(path, "utf8").split(/^## /m);
      const section = sections.find((text) => text.startsWith(`${name}\n`)) ?? "";
      for (const part of ["What it means", "What users see", "Look at", "Do"]) {
        expect(section).toContain(`\n**${part}.**`);
      }
    },
  );

  it("have runbooks that ask for what is there as well", () => {
    const text = readFileSync("docs/runbooks.md", "utf8");
    const blocks = [...text.matchAll(/^```promql\n([\s\S]*?)^```/gm)].map(
      ([, block = ""]) => block,
    );
    const ours = blocks.filter((block) => !block.includes("container_")); // of kubelet
    expect(ours.length).toBeGreaterThan(5);
    expect(ours.flatMap(missing)).toEqual([]);
    for (const [name] of text.matchAll(/\b(?:aliquot|nodejs)_[a-z_0-9]+/g)) {
      expect([...series.keys(), "aliquot_fleet"]).toContain(name);
    }
  });

  it("have each a name of their own, and no runbook is left behind", () => {
    const names = ALERTS.map(({ alert }) => alert);
    expect(new Set(names).size).toBe(names.length);
    const headings = readFileSync("docs/runbooks.md", "utf8").matchAll(/^## (Aliquot\w+)$/gm);
    expect([...headings].map(([, name]) => name)).toEqual(names);
  });
});

describe("the dashboard", () => {
  it.each(PANELS.map((panel) => [panel.title, panel] as const))(
    "asks for what is there: %s",
    (_title, { targets = [], description }) => {
      expect(targets.length).toBeGreaterThan(0);
      expect(description).toMatch(/\.$/);
      for (const { expr, legendFormat } of targets) {
        const query = withChoices(expr);
        expect(missing(query)).toEqual([]);
        const { groupedBy } = readQuery(query);
        const legend = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label);
        const grouped = new Set(groupedBy.filter((label) => label !== "le" && label !== "hash"));
        expect(legend).toEqual([...grouped]);
      }
    },
  );

  it("offers choices that are there", () => {
    const [datasource, ...choices] = DASHBOARD.templating.list;
    expect(datasource?.query).toBe("prometheus");
    for (const { query } of choices) {
      const [, selector = "", label = ""] = /^label_values\((.*), (\w+)\)$/.exec(query) ?? [];
      expect(missing(withChoices(`count by (${label}) (${selector})`))).toEqual([]);
    }
    const used = PANELS.flatMap(({ targets = [] }) =>
      targets.flatMap(({ expr }) => expr.match(/\$(?!__)\w+/g) ?? []),
    );
    expect([...new Set(used)].sort()).toEqual(choices.map(({ name }) => `$${name}`).sort());
  });

  it("has no panel on top of another", () => {
    const taken = new Set<string>();
    for (const { gridPos } of DASHBOARD.panels) {
      expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
          expect(taken).not.toContain(`${x},${y}`);
          taken.add(`${x},${y}`);
        }
      }
    }
    const ids = DASHBOARD.panels.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("shows every metric of limits, store and fleet", () => {
    const shown = new Set(
      PANELS.flatMap(({ targets = [] }) =>
        targets.flatMap(({ expr }) =>
          readQuery(withChoices(expr)).selectors.map(({ metric }) => metric),
        ),
      ),
    );
    const ours = [...series.keys()].filter((name) => name.startsWith("aliquot_"));
    const left = ours.filter((name) => !shown.has(name) && !/_(sum|count)$/.test(name));
    expect(left.sort()).toEqual([
      "aliquot_build_info",
      "aliquot_config_last_success_timestamp_seconds",
      "aliquot_config_reloads_total",
    ]);
  });
});

describe("the pod monitor", () => {
  it("scrapes the port of the sidecar, and passes its fleet on", () => {
    const monitor = find<Monitor>(objectsOf("k8s/monitoring/pod-monitor.yaml"), "PodMonitor");
    const [endpoint] = monitor.spec.podMetricsEndpoints;
    expect(endpoint).toMatchObject({ port: "aliquot-ops", path: "/metrics" });
    expect(monitor.spec.podTargetLabels).toEqual(["aliquot/fleet"]);
    const [selected] = monitor.spec.selector.matchExpressions;
    expect(selected).toEqual({ key: "aliquot/fleet", operator: "Exists" });
  });
});

interface Monitor {
  readonly spec: {
    readonly selector: { readonly matchExpressions: readonly unknown[] };
    readonly podTargetLabels: readonly string[];
    readonly podMetricsEndpoints: readonly object[];
  };
}
