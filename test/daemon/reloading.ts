/** What tests of reloads ask of a running sidecar. */

import { until } from "../../fleet/until.ts";
import type { Sidecar } from "../support/sidecar.ts";

/**
 * A swap takes effect within a fifth of a second; the rest is for a machine with other work.
 * Looking again without an event comes later than this, so that a missed event is a failed test.
 */
export const IN_FORCE_WITHIN_MS = 5_000;

export interface Reloads {
  readonly ok: number;
  readonly failed: number;
}

export async function reloads(sidecar: Sidecar): Promise<Reloads> {
  const metrics = await sidecar.metrics();
  const count = (outcome: string): number =>
    metrics.get(`aliquot_config_reloads_total{outcome="${outcome}"}`) ?? Number.NaN;
  return { ok: count("ok"), failed: count("failed") };
}

/** Waits until so many reloads were counted. */
export async function untilReloads(sidecar: Sidecar, wanted: Partial<Reloads>): Promise<void> {
  await until(`reloads are ${JSON.stringify(wanted)}`, IN_FORCE_WITHIN_MS, async () => {
    const now = await reloads(sidecar);
    return now.ok === (wanted.ok ?? now.ok) && now.failed === (wanted.failed ?? now.failed);
  });
}

/** Tokens that a fresh key of a limit has. */
export async function burstOf(sidecar: Sidecar, limit: string, key = "fresh"): Promise<number> {
  return (await sidecar.check(limit, key, 0)).remaining;
}

export interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** Lines of the log with this message. */
export function logged(sidecar: Sidecar, message: RegExp): readonly LogLine[] {
  return sidecar.output
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as LogLine)
    .filter(({ msg }) => message.test(msg));
}

export interface ConfigStatus {
  readonly hash: string;
  readonly loaded_at: string;
  readonly reloads: Reloads;
  readonly last_reload: {
    readonly outcome: string;
    readonly at?: string;
    readonly problems?: readonly { readonly source: string; readonly field: string }[];
  };
  readonly needs_restart: readonly string[];
}

export async function configStatus(sidecar: Sidecar): Promise<ConfigStatus> {
  return ((await sidecar.status()) as { config: ConfigStatus }).config;
}
