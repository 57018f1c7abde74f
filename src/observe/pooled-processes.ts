/**
 * Metrics of several processes that are one sidecar: most are added up; those of the event loop are
 * averaged, and what all have in common is told once.
 */

interface Sample {
  readonly metricName?: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

/** One metric in the form in which prom-client tells it. */
export interface ProcessMetric {
  readonly name: string;
  readonly help: string;
  readonly type: unknown;
  /** How several are put together, by the choice of the library. */
  readonly aggregator: string;
  readonly values: readonly Sample[];
}

/** All metrics of one process. */
export type ProcessMetrics = readonly ProcessMetric[];

/** @param parts - The same metric of each process, at least one; its own is the first. */
export function pooledMetric(parts: readonly ProcessMetric[]): ProcessMetric {
  const [first] = parts as [ProcessMetric, ...ProcessMetric[]];
  const series = new Map<string, Sample[]>();
  for (const { values } of parts) {
    for (const sample of values) {
      const id = `${sample.metricName} ${JSON.stringify(Object.entries(sample.labels).sort())}`;
      const same = series.get(id);
      if (same === undefined) series.set(id, [sample]);
      else same.push(sample);
    }
  }
  const values = [...series.values()].map((samples) => {
    return { ...(samples[0] as Sample), value: pooledValue(first.aggregator, samples) };
  });
  return { ...first, values };
}

/** What outlives processes that are gone: all that only grows, added up. */
export function outlivingMetrics(lists: readonly ProcessMetrics[]): ProcessMetrics {
  const byName = new Map<string, ProcessMetric[]>();
  for (const metric of lists.flat()) {
    if (metric.type !== "counter" && metric.type !== "histogram") continue;
    byName.set(metric.name, [...(byName.get(metric.name) ?? []), metric]);
  }
  return [...byName.values()].map(pooledMetric);
}

function pooledValue(aggregator: string, samples: readonly Sample[]): number {
  const values = samples.map(({ value }) => value);
  const sum = values.reduce((total, value) => total + value, 0);
  if (aggregator === "sum") return sum;
  if (aggregator === "average") return sum / values.length;
  if (aggregator === "min") return Math.min(...values);
  if (aggregator === "max") return Math.max(...values);
  // `first`, and what the library would leave out, such as the start of the process.
  return values[0] as number;
}
