/**
 * The metrics of the sidecar.
 *
 * Nothing is counted here: the engine and the front doors keep plain numbers, and each metric reads
 * them when it is scraped. So a limit shows up with zeros as soon as it is configured and is gone
 * as soon as it is not, and no label can hold a key, because no key ever comes this way.
 */
import { Registry } from "prom-client";
import { type Figures, type LimitFigures, type Listing, OUTCOMES, SOURCES } from "../core/tally.ts";
import type { WorkerCounts } from "../ports/observed.ts";
import { type DescriptorFigures, registerDescriptors } from "./descriptor-metrics.ts";
import { DurationCounts } from "./duration-counts.ts";
import { durationHistogram } from "./duration-histogram.ts";
import { openMetricsTwin, prefersOpenMetrics } from "./exposition.ts";
import type { ProcessMetrics } from "./pooled-processes.ts";
import { registerProcessMetrics } from "./process-metrics.ts";
import { counter, gauge, type Reading } from "./scraped-metric.ts";

/** The doors through which checks come, as the `transport` label names them. */
export const TRANSPORTS = ["http", "uds", "grpc", "forward", "resp"] as const;
export type Transport = (typeof TRANSPORTS)[number];

/** Counts for each of them, all zero. */
export function transportCounts(): Readonly<Record<Transport, DurationCounts>> {
  const counts = (): DurationCounts => new DurationCounts();
  return { http: counts(), uds: counts(), grpc: counts(), forward: counts(), resp: counts() };
}

export interface ConfigFigures {
  readonly reloadsOk: number;
  readonly reloadsFailed: number;
  /** The files as they were read last are in force. */
  readonly lastReloadOk: boolean;
  /** When the files were last found good, in seconds since the epoch. */
  readonly lastSuccessSeconds: number;
  readonly hash: string;
}

/** What the daemon lets the metrics see. */
export interface MetricsView {
  /** Asked once per scrape. */
  figures(): Figures;
  config(): ConfigFigures;
  /** Requests that fell under no policy. */
  forwardUnmatched(): number;
  /** Asked once per scrape and metric. */
  descriptors(): DescriptorFigures;
  readonly decisionDurations: Readonly<Record<Transport, DurationCounts>>;
  readonly reconcileDurations: DurationCounts;
  readonly version: string;
  /** Left out where one process does everything: it is its own and only worker. */
  readonly workers?: (() => WorkerCounts) | undefined;
  /** Metrics of further processes that are the same sidecar; none when left out. */
  readonly processes?: (() => readonly ProcessMetrics[]) | undefined;
}

export interface Metrics {
  /** Renders all metrics in the format that an Accept header asks for. */
  render(accept: string | undefined): Promise<{ contentType: string; body: string }>;
}

export function createMetrics(view: MetricsView): Metrics {
  const registry = new Registry();
  let figures: Figures | undefined;
  const current = (): Figures => figures ?? view.figures();

  registerProcessMetrics(registry, view.processes);
  registerLimits(registry, () => current().limits);
  registerDurations(registry, view);
  counter(registry, "forward_unmatched_total", {
    help: "Requests of proxies that fell under no policy and were let through.",
    read: () => [[{}, view.forwardUnmatched()]],
  });
  registerDescriptors(registry, () => view.descriptors());
  registerFleet(registry, current);
  registerConfig(registry, view);
  registerWorkers(registry, view.workers ?? (() => ALONE));
  const openMetrics = openMetricsTwin(registry);
  return {
    render: (accept) => {
      const chosen = prefersOpenMetrics(accept) ? openMetrics : registry;
      // Rendering reads every metric before it first waits, so all of them see one state.
      figures = view.figures();
      const text = chosen.metrics();
      figures = undefined;
      return text.then((body) => ({ contentType: chosen.contentType, body }));
    },
  };
}

function registerLimits(registry: Registry, limits: () => readonly LimitFigures[]): void {
  const perLimit = (read: (limit: LimitFigures) => number) => (): Reading[] =>
    limits().map((limit) => [{ limit: limit.name }, read(limit)]);
  counter(registry, "decisions_total", {
    help: "Decisions taken, by limit, outcome and where they were taken.",
    labels: ["limit", "outcome", "source"],
    read: () => limits().flatMap(decisionsOf),
  });
  counter(registry, "tokens_total", {
    help: "Tokens that decided checks asked for, by limit and outcome.",
    labels: ["limit", "outcome"],
    read: () => limits().flatMap(tokensOf),
  });
  counter(registry, "over_admitted_tokens_total", {
    help: "Tokens found admitted beyond rate and burst when the fleet's counts met.",
    labels: ["limit"],
    read: perLimit((limit) => limit.tally.overAdmitted),
  });
  counter(registry, "damaged_keys_total", {
    help: "Stored values that could not be read and were replaced.",
    labels: ["limit"],
    read: perLimit((limit) => limit.tally.damaged),
  });
  counter(registry, "lost_keys_total", {
    help: "Keys gone from the store before their buckets could be full: evicted or deleted.",
    labels: ["limit"],
    read: perLimit((limit) => limit.tally.lostKeys),
  });
  gauge(registry, "share_ratio", {
    help: "Mean part of the rate that this pod may refill with.",
    labels: ["limit"],
    read: perLimit((limit) => limit.share),
  });
  gauge(registry, "unreconciled_tokens", {
    help: "Tokens admitted here and not yet told to the store.",
    labels: ["limit"],
    read: perLimit((limit) => limit.unreconciled),
  });
  gauge(registry, "debt_tokens", {
    help: "Largest debt among this pod's buckets at the last reconcile.",
    labels: ["limit"],
    read: perLimit((limit) => limit.debt),
  });
}

function decisionsOf({ name, tally }: LimitFigures): Reading[] {
  return OUTCOMES.flatMap((outcome, index) =>
    SOURCES.map((source, offset): Reading => {
      const count = tally.decisions[index * SOURCES.length + offset] ?? 0;
      return [{ limit: name, outcome, source }, count];
    }),
  );
}

function tokensOf({ name, tally }: LimitFigures): Reading[] {
  return OUTCOMES.map((outcome, index) => [{ limit: name, outcome }, tally.tokens[index] ?? 0]);
}

function registerDurations(registry: Registry, view: MetricsView): void {
  const { decisionDurations, reconcileDurations } = view;
  registry.registerMetric(
    durationHistogram(
      "aliquot_decision_duration_seconds",
      "Time from the last byte of a check, or batch of checks, to its answer.",
      () =>
        TRANSPORTS.map((transport) => ({
          labels: { transport },
          counts: decisionDurations[transport],
        })),
    ),
  );
  registry.registerMetric(
    durationHistogram("aliquot_reconcile_duration_seconds", "Time of one exchange.", () => [
      { labels: {}, counts: reconcileDurations },
    ]),
  );
}

function registerFleet(registry: Registry, figures: () => Figures): void {
  const single = (read: (figures: Figures) => number) => (): Reading[] => [[{}, read(figures())]];
  gauge(registry, "live_pods", {
    help: "Live pods of the fleet, as used for shares.",
    read: single((all) => all.pods),
  });
  const listing = (read: (listing: Listing) => number) => (): Reading[] => {
    const { listing: told } = figures();
    return told === undefined ? [] : [[{}, read(told)]];
  };
  gauge(registry, "listed_pods", {
    help: "Pods of the fleet as the listing beside the store told last.",
    read: listing(({ pods }) => pods),
  });
  gauge(registry, "listing_up", {
    help: "1 while the listing can be asked, 0 once it has failed for half a minute.",
    read: listing(({ isCurrent }) => Number(isCurrent)),
  });
  gauge(registry, "fallback_active", {
    help: "1 while the store is out of reach and limits are stricter.",
    read: single((all) => Number(all.fallbackActive)),
  });
  gauge(registry, "store_up", {
    help: "1 when the store answered last time it was asked.",
    read: single((all) => Number(all.storeUp)),
  });
  gauge(registry, "tracked_keys", {
    help: "Keys that this pod has a bucket for.",
    read: single((all) => all.trackedKeys),
  });
  counter(registry, "evicted_keys_total", {
    help: "Keys evicted to make room for others.",
    read: single((all) => all.evictedKeys),
  });
  counter(registry, "lost_tokens_total", {
    help: "Tokens admitted here whose report was given up, after an outage or a flood of keys.",
    read: single((all) => all.lostTokens),
  });
  counter(registry, "reconcile_total", {
    help: "Exchanges with the store, by how they ended.",
    labels: ["outcome"],
    read: () => {
      const { ok, timeout, unreachable, refused, malformed } = figures().reconciled;
      const ended = { ok, timeout, unreachable, refused, malformed };
      return Object.entries(ended).map(([outcome, count]) => [{ outcome }, count]);
    },
  });
  counter(registry, "reconcile_keys_total", {
    help: "Keys carried by exchanges.",
    read: single((all) => all.reconciled.keys),
  });
}

function registerConfig(registry: Registry, view: MetricsView): void {
  counter(registry, "config_reloads_total", {
    help: "Attempts to put a changed configuration in force, by outcome.",
    labels: ["outcome"],
    read: () => {
      const { reloadsOk, reloadsFailed } = view.config();
      return [
        [{ outcome: "ok" }, reloadsOk],
        [{ outcome: "failed" }, reloadsFailed],
      ];
    },
  });
  gauge(registry, "config_last_success_timestamp_seconds", {
    help: "When the configuration was last found good.",
    read: () => [[{}, view.config().lastSuccessSeconds]],
  });
  gauge(registry, "config_last_reload_successful", {
    help: "1 when the files of the configuration, as read last, are in force.",
    read: () => [[{}, Number(view.config().lastReloadOk)]],
  });
  gauge(registry, "config_info", {
    help: "The configuration in force.",
    labels: ["hash"],
    read: () => [[{ hash: view.config().hash }, 1]],
  });
  gauge(registry, "build_info", {
    help: "The running version.",
    labels: ["version", "node"],
    read: () => [[{ version: view.version, node: process.version }, 1]],
  });
}

const ALONE: WorkerCounts = { workers: 1, up: 1, restarts: 0 };

function registerWorkers(registry: Registry, figures: () => WorkerCounts): void {
  gauge(registry, "workers_up", {
    help: "Worker processes that answer checks.",
    read: () => [[{}, figures().up]],
  });
  counter(registry, "worker_restarts_total", {
    help: "Worker processes that died or hung and were replaced.",
    read: () => [[{}, figures().restarts]],
  });
}
