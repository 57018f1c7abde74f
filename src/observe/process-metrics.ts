/**
 * The default metrics of the process, less what makes the number of series depend on its state.
 *
 * A series that comes and goes leaves gaps in graphs, and hides in a count of series whether the
 * sidecar's own ones grow.
 */
import { collectDefaultMetrics, Histogram, type Metric, Registry } from "prom-client";
import { type ProcessMetric, type ProcessMetrics, pooledMetric } from "./pooled-processes.ts";

/** One series per kind of handle that happens to be open; the totals beside them stay. */
const UNSTEADY = ["nodejs_active_handles", "nodejs_active_requests", "nodejs_active_resources"];

/** Kinds of garbage collection, each a series of its own once it has happened. */
const COLLECTIONS = ["major", "minor", "incremental", "weakcb"];

/** @param others - Metrics of further processes that are the same sidecar; none when left out. */
export function registerProcessMetrics(
  registry: Registry,
  others?: () => readonly ProcessMetrics[],
): void {
  const own = new Registry();
  collectDefaultMetrics({ register: own });
  for (const name of UNSTEADY) own.removeSingleMetric(name);
  const collections = own.getSingleMetric("nodejs_gc_duration_seconds");
  if (collections instanceof Histogram) for (const kind of COLLECTIONS) collections.zero({ kind });
  for (const { name } of own.getMetricsAsArray()) {
    const metric = own.getSingleMetric(name) as Metric;
    registry.registerMetric(others === undefined ? metric : withOthers(metric, others));
  }
}

/** Tells the metrics of this process to another one; to be made once. */
export function processMetricsTeller(): () => Promise<ProcessMetrics> {
  const registry = new Registry();
  registerProcessMetrics(registry);
  return () => registry.getMetricsAsJSON() as Promise<unknown> as Promise<ProcessMetrics>;
}

/** The same metric, read over all processes. */
function withOthers(metric: Metric, others: () => readonly ProcessMetrics[]): Metric {
  const { name } = named(metric);
  // The renderer may ask a twin of this object that has another name.
  async function get(this: Metric): Promise<ProcessMetric> {
    const plain: Metric = Object.create(metric, { name: { value: named(this).name } });
    const own = named(await plain.get());
    const parts = others().flatMap((list) => list.filter((each) => each.name === name));
    return pooledMetric([own, ...parts]);
  }
  return Object.assign(Object.create(metric) as Metric, { get, getForPromString: get });
}

/** The library's own types leave out what its metrics are called. */
function named(metric: unknown): ProcessMetric {
  return metric as ProcessMetric;
}
