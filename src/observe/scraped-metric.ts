/** Metrics that hold no state: they are read anew at each scrape. */
import { Counter, Gauge, type Registry } from "prom-client";

/** Labels and value of one series. */
export type Reading = [labels: Record<string, string>, value: number];

export interface ScrapedMetric {
  readonly help: string;
  readonly labels?: readonly string[];
  readonly read: () => readonly Reading[];
}

const PREFIX = "aliquot_";

/** Registers a counter; what it reads must only grow while the process lives. */
export function counter(registry: Registry, name: string, metric: ScrapedMetric): void {
  new Counter({
    name: PREFIX + name,
    help: metric.help,
    labelNames: metric.labels ?? [],
    registers: [registry],
    collect() {
      this.reset();
      for (const [labels, value] of metric.read()) this.inc(labels, value);
    },
  });
}

export function gauge(registry: Registry, name: string, metric: ScrapedMetric): void {
  new Gauge({
    name: PREFIX + name,
    help: metric.help,
    labelNames: metric.labels ?? [],
    registers: [registry],
    collect() {
      // A reset leaves a metric without labels at 0, also one that has nothing to tell.
      this.reset();
      if (metric.labels === undefined) this.remove();
      for (const [labels, value] of metric.read()) this.set(labels, value);
    },
  });
}
