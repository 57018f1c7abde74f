/** Every query of the alerts and of the dashboard. */
import { spawnSync } from "node:child_process";
import { find, objectsOf } from "./manifest-files.ts";

export interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook_url: string };
}

export interface RuleGroup {
  readonly name: string;
  readonly rules: readonly Alert[];
}

export const GROUPS: readonly RuleGroup[] = find<{ spec: { groups: RuleGroup[] } }>(
  objectsOf("k8s/monitoring/rules.yaml"),
  "PrometheusRule",
).spec.groups;

export const ALERTS: readonly Alert[] = GROUPS.flatMap(({ rules }) => rules);

export interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly gridPos: {
    readonly x: number;
    readonly y: number;
    readonly w: number;
    readonly h: number;
  };
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

export interface Dashboard {
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly query: string }[];
  };
  readonly panels: readonly Panel[];
}

/** What `npm run dashboard` prints. */
export function dashboard(): Dashboard {
  const run = spawnSync(process.execPath, ["scripts/dashboard.mjs"], { encoding: "utf8" });
  if (run.status !== 0) throw new Error(run.stderr);
  return JSON.parse(run.stdout) as Dashboard;
}

/** A query of the dashboard with everything chosen, as Grafana would send it. */
export function withChoices(query: string): string {
  return query
    .replaceAll("$__rate_interval", "1m")
    .replaceAll(/\$(namespace|fleet|limit)\b/g, ".*");
}
