/**
 * The default metrics of the process, less what makes the number of series depend on its state.
 *
 * A series that comes and goes leaves gaps in graphs, and hides in a count of series whether the
 * sidecar's own ones grow.
 */
import { collectDefaultMetrics, Histogram, type Registry } from "prom-client";

/** One series per kind of handle that happens to be open; the totals beside them stay. */
const UNSTEADY = ["nodejs_active_handles", "nodejs_active_requests", "nodejs_active_resources"];

/** Kinds of garbage collection, each a series of its own once it has happened. */
const COLLECTIONS = ["major", "minor", "incremental", "weakcb"];

export function registerProcessMetrics(registry: Registry): void {
  collectDefaultMetrics({ register: registry });
  for (const name of UNSTEADY) registry.removeSingleMetric(name);
  const collections = registry.getSingleMetric("nodejs_gc_duration_seconds");
  if (collections instanceof Histogram) for (const kind of COLLECTIONS) collections.zero({ kind });
}
