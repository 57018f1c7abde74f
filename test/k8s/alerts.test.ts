/**
 * When the alerts fire and when not, judged by Prometheus's own promtool on series made up for it.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { ALERTS, GROUPS } from "./queries.ts";

/** Values of a series in promtool's notation: one each minute, `0+6x30` grows by 6 a minute. */
type Series = Readonly<Record<string, string>>;

interface Story {
  readonly fires: Series;
  readonly silent: Series;
  /** Minute at which it is judged. */
  readonly at?: number;
}

const FLEET = 'namespace="shop", aliquot_fleet="checkout"';
const pod = (number: number, more = ""): string => `{${FLEET}, pod="p${number}"${more}}`;
const SIDECAR = `{${FLEET}, pod="p1", container="aliquot"}`;

/** A gauge of three pods. */
const three = (metric: string, one: string, two: string, last: string): Series => ({
  [`${metric}${pod(1)}`]: one,
  [`${metric}${pod(2)}`]: two,
  [`${metric}${pod(3)}`]: last,
});

/** A counter of one pod per label value. */
const parts = (metric: string, label: string, values: Readonly<Record<string, string>>): Series =>
  Object.fromEntries(
    Object.entries(values).map(([value, series]) => [
      `${metric}${pod(1, `, ${label}="${value}"`)}`,
      series,
    ]),
  );

const limit = (metric: string, outcome: string, values: string): Series => ({
  [`${metric}${pod(1, `, limit="api"${outcome === "" ? "" : `, outcome="${outcome}"`}`)}`]: values,
});

const FLAPS = "1 0 1 0 1 0 1x60";
const ON = "1x60";
const OFF = "0x60";

const STORIES: Readonly<Record<string, Story>> = {
  AliquotFleetInFallback: {
    fires: three("aliquot_fallback_active", ON, ON, OFF),
    silent: three("aliquot_fallback_active", ON, OFF, OFF),
  },
  AliquotFleetPartitioned: {
    fires: three("aliquot_fallback_active", ON, OFF, OFF),
    silent: three("aliquot_fallback_active", ON, ON, ON),
  },
  AliquotStoreFlapping: {
    fires: three("aliquot_store_up", FLAPS, FLAPS, FLAPS),
    silent: three("aliquot_store_up", "1x10 0x5 1x40", ON, ON),
    at: 12,
  },
  AliquotReconcileFailing: {
    fires: parts("aliquot_reconcile_total", "outcome", { ok: "0+90x60", timeout: "0+10x60" }),
    silent: parts("aliquot_reconcile_total", "outcome", { ok: "0+99x60", timeout: "0+1x60" }),
  },
  AliquotReconcileSlow: {
    fires: parts("aliquot_reconcile_duration_seconds_bucket", "le", {
      0.02: "0+90x60",
      0.05: "0+100x60",
      "+Inf": "0+100x60",
    }),
    silent: parts("aliquot_reconcile_duration_seconds_bucket", "le", {
      0.02: "0+100x60",
      0.05: "0+100x60",
      "+Inf": "0+100x60",
    }),
  },
  AliquotReconcileLag: {
    fires: {
      ...limit("aliquot_unreconciled_tokens", "", "200x60"),
      ...limit("aliquot_tokens_total", "allowed", "0+600x60"),
    },
    silent: {
      ...limit("aliquot_unreconciled_tokens", "", "100x60"),
      ...limit("aliquot_tokens_total", "allowed", "0+600x60"),
    },
  },
  AliquotTokensLost: {
    fires: three("aliquot_lost_tokens_total", "0x28 5x30", OFF, OFF),
    silent: three("aliquot_lost_tokens_total", "5x60", OFF, OFF),
  },
  AliquotStoredValuesDamaged: {
    fires: limit("aliquot_damaged_keys_total", "", "0x28 1x30"),
    silent: limit("aliquot_damaged_keys_total", "", "3x60"),
  },
  AliquotStoredKeysLost: {
    fires: limit("aliquot_lost_keys_total", "", "0x28 1x30"),
    silent: limit("aliquot_lost_keys_total", "", "3x60"),
  },
  AliquotOverAdmission: {
    fires: {
      ...limit("aliquot_over_admitted_tokens_total", "", "0+60x60"),
      ...limit("aliquot_tokens_total", "allowed", "0+600x60"),
    },
    silent: {
      ...limit("aliquot_over_admitted_tokens_total", "", "0+6x60"),
      ...limit("aliquot_tokens_total", "allowed", "0+600x60"),
    },
    at: 40,
  },
  AliquotDenialsHigh: {
    fires: {
      ...limit("aliquot_decisions_total", "allowed", "0+100x60"),
      ...limit("aliquot_decisions_total", "denied", "0+200x60"),
    },
    // Most checks are denied, but there are few.
    silent: {
      ...limit("aliquot_decisions_total", "allowed", "0+1x60"),
      ...limit("aliquot_decisions_total", "denied", "0+2x60"),
    },
  },
  AliquotKeysEvicted: {
    fires: three("aliquot_evicted_keys_total", "0+1x60", OFF, OFF),
    silent: three("aliquot_evicted_keys_total", "7x60", OFF, OFF),
  },
  AliquotFleetSizesDiffer: {
    fires: three("aliquot_live_pods", "3x60", "3x60", "2x60"),
    silent: three("aliquot_live_pods", "2x28 3x30", "2x29 3x30", "2x30 3x30"),
  },
  AliquotPodsNotCounted: {
    fires: three("aliquot_live_pods", "2x60", "2x60", "1x60"),
    silent: three("aliquot_live_pods", "4x60", "4x60", "4x60"),
  },
  AliquotPodsWithoutSidecar: {
    fires: {
      ...three("aliquot_live_pods", "5x60", "5x60", "5x60"),
      ...three("aliquot_listed_pods", "5x60", "5x60", "5x60"),
    },
    silent: {
      ...three("aliquot_live_pods", "3x60", "3x60", "3x60"),
      ...three("aliquot_listed_pods", "3x60", "3x60", "3x60"),
    },
  },
  AliquotListingDown: {
    fires: three("aliquot_listing_up", ON, ON, OFF),
    silent: three("aliquot_listing_up", ON, ON, ON),
  },
  AliquotConfigReloadFailed: {
    fires: three("aliquot_config_last_reload_successful", ON, OFF, ON),
    silent: three("aliquot_config_last_reload_successful", ON, ON, ON),
  },
  AliquotConfigsDiffer: {
    fires: parts("aliquot_config_info", "hash", { a: ON, b: ON }),
    silent: parts("aliquot_config_info", "hash", { a: ON }),
  },
  AliquotSidecarDown: {
    fires: { [`up${SIDECAR}`]: OFF },
    silent: { [`up${pod(1, ', container="app"')}`]: OFF, [`up${SIDECAR}`]: ON },
  },
  AliquotSidecarRestarts: {
    fires: { [`process_start_time_seconds${SIDECAR}`]: "1x10 2x10 3x5 4x30" },
    silent: { [`process_start_time_seconds${SIDECAR}`]: "1x10 2x10 3x30" },
  },
  AliquotWorkerRestarts: {
    fires: { [`aliquot_worker_restarts_total${SIDECAR}`]: "0x5 1x5 2x5 3x60" },
    silent: { [`aliquot_worker_restarts_total${SIDECAR}`]: "0x5 1x5 2x60" },
  },
  AliquotDecisionsSlow: {
    fires: {
      [`aliquot_decision_duration_seconds_bucket${pod(1, ', transport="uds", le="0.01"')}`]:
        "0+90x60",
      [`aliquot_decision_duration_seconds_bucket${pod(1, ', transport="uds", le="+Inf"')}`]:
        "0+100x60",
      [`aliquot_decision_duration_seconds_bucket${pod(1, ', transport="uds", le="0.02"')}`]:
        "0+100x60",
    },
    silent: {
      [`aliquot_decision_duration_seconds_bucket${pod(1, ', transport="uds", le="0.01"')}`]:
        "0+100x60",
      [`aliquot_decision_duration_seconds_bucket${pod(1, ', transport="uds", le="+Inf"')}`]:
        "0+100x60",
    },
  },
  AliquotEventLoopStalls: {
    fires: { [`nodejs_eventloop_lag_p99_seconds${SIDECAR}`]: "0.2x60" },
    silent: { [`nodejs_eventloop_lag_p99_seconds${SIDECAR}`]: "0.011x20 0.2 0.011x40" },
  },
  AliquotMemoryHigh: {
    fires: { [`process_resident_memory_bytes${SIDECAR}`]: "250000000x60" },
    silent: { [`process_resident_memory_bytes${SIDECAR}`]: "80000000x60" },
  },
};

const folder = mkdtempSync(join(tmpdir(), "aliquot-alerts-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/**
 * What promtool finds to complain about when no alert is expected in any story: those that fire,
 * by name, with their labels. Annotations are left out: it would compare them word by word.
 */
function firing(which: "fires" | "silent"): Map<string, string> {
  const groups = GROUPS.map(({ name, rules }) => ({
    name,
    rules: rules.map(({ annotations: _, ...rule }) => rule),
  }));
  const tests = Object.entries(STORIES).map(([alertname, story]) => ({
    interval: "1m",
    input_series: Object.entries(story[which]).map(([series, values]) => ({ series, values })),
    alert_rule_test: [{ eval_time: `${story.at ?? 30}m`, alertname, exp_alerts: [] }],
  }));
  writeFileSync(join(folder, "rules.yaml"), stringify({ groups }));
  const judged = { rule_files: ["rules.yaml"], evaluation_interval: "1m", tests };
  writeFileSync(join(folder, "test.yaml"), stringify(judged));
  const run = spawnSync("promtool", ["test", "rules", join(folder, "test.yaml")], {
    encoding: "utf8",
  });
  const said = run.stdout + run.stderr;
  if (!/SUCCESS|FAILED/.test(said)) throw new Error(said);
  return new Map(
    [...said.matchAll(/Labels:\{(.*alertname="(\w+)".*)\}/g)].map(([, labels = "", name = ""]) => [
      name,
      labels,
    ]),
  );
}

const HAS_PROMTOOL = spawnSync("promtool", ["--version"]).status === 0;

describe("the alerts", () => {
  it("have each a story in which they fire and one in which they do not", () => {
    expect(Object.keys(STORIES)).toEqual(ALERTS.map(({ alert }) => alert));
  });
});

// Skipped where promtool is absent: nothing else evaluates PromQL as Prometheus does.
describe.skipIf(!HAS_PROMTOOL)("judged by promtool", () => {
  it("the rules are ones that Prometheus takes, with their texts", () => {
    writeFileSync(join(folder, "whole.yaml"), stringify({ groups: GROUPS }));
    const run = spawnSync("promtool", ["check", "rules", "--lint=all", join(folder, "whole.yaml")]);
    expect([run.status, run.stderr.toString()]).toEqual([0, ""]);
  });

  it("each fires in its story, and tells the fleet", () => {
    const fired = firing("fires");
    expect([...fired.keys()]).toEqual(Object.keys(STORIES));
    for (const labels of fired.values()) expect(labels).toContain('aliquot_fleet="checkout"');
  });

  it("none fires where all is as it should be", () => {
    expect([...firing("silent").keys()]).toEqual([]);
  });
});
