/** docs/metrics.md and the metrics page name the same metrics, of the same types and labels. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type Figures, noReconciles, Tally } from "../../src/core/tally.ts";
import { Observation } from "../../src/observe/observation.ts";

const COLUMNS = ["metric", "type", "unit", "labels", "meaning", "look for"];

interface Documented {
  readonly type: string;
  readonly unit: string;
  readonly labels: readonly string[];
  readonly meaning: string;
  readonly lookFor: string;
}

function documented(): Map<string, Documented> {
  const text = readFileSync("docs/metrics.md", "utf8");
  const [, part = ""] = /<!-- metrics -->([\s\S]*)<!-- \/metrics -->/.exec(text) ?? [];
  const rows = part.split("\n").filter((line) => line.startsWith("| `"));
  const found = new Map<string, Documented>();
  for (const row of rows) {
    const cells = row.split("|").map((cell) => cell.trim());
    expect(cells, row).toHaveLength(COLUMNS.length + 2);
    const [, name = "", type = "", unit = "", labels = "", meaning = "", lookFor = ""] = cells;
    const metric = name.replaceAll("`", "");
    expect(found.has(metric), `${metric} is there twice`).toBe(false);
    found.set(metric, {
      type,
      unit,
      labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label = ""]) => label).sort(),
      meaning,
      lookFor,
    });
  }
  return found;
}

/** Everything that a pod can tell: a listing, a limit, descriptors that are shown. */
async function told(): Promise<Map<string, { type: string; labels: string[] }>> {
  const figures: Figures = {
    limits: [{ name: "api", tally: new Tally(), unreconciled: 0, debt: 0, share: 1 }],
    trackedKeys: 0,
    evictedKeys: 0,
    lostTokens: 0,
    pods: 1,
    listing: { pods: 1, isCurrent: true },
    fallbackActive: false,
    storeUp: true,
    reconciled: noReconciles(),
  };
  const counts = { allowed: 1, denied: 0, shadow_denied: 0 };
  const metrics = new Observation({ monotonicUs: () => 0 }).metrics({
    figures: () => figures,
    config: () => ({
      reloadsOk: 0,
      reloadsFailed: 0,
      lastReloadOk: true,
      lastSuccessSeconds: 1,
      hash: "h",
    }),
    forwardUnmatched: () => 0,
    descriptors: () => ({ unmatched: 0, shown: [{ rule: "r", descriptor: "d=1", counts }] }),
    version: "1.2.3",
  });
  const { body } = await metrics.render(undefined);
  const found = new Map<string, { type: string; labels: string[] }>();
  for (const [, name = "", type = ""] of body.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
    const series = new RegExp(`^${name}(?:_bucket|_sum|_count)?(?:\\{(.*)\\})? \\S+$`, "gm");
    const labels = new Set<string>();
    for (const [, text = ""] of body.matchAll(series)) {
      for (const [, label = ""] of text.matchAll(/(\w+)="/g)) labels.add(label);
    }
    labels.delete("le");
    found.set(name, { type, labels: [...labels].sort() });
  }
  return found;
}

describe("docs/metrics.md", () => {
  it("names every metric of the page, and none that is not there", async () => {
    expect([...documented().keys()].sort()).toEqual([...(await told()).keys()].sort());
  });

  it("tells the type and the labels of each", async () => {
    const described = [...documented()].map(([name, { type, labels }]) => [name, { type, labels }]);
    expect(Object.fromEntries(described)).toEqual(Object.fromEntries(await told()));
  });

  it("has a unit and a meaning for each, and what to look for where it is our own", () => {
    for (const [name, { unit, meaning, lookFor }] of documented()) {
      expect(unit, name).not.toBe("");
      expect(meaning, name).toMatch(/\.$/);
      if (name.startsWith("aliquot_")) expect(lookFor, name).toMatch(/\.$/);
    }
  });
});
