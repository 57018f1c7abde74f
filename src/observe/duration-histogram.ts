/** A prom-client histogram whose values are read from plain counts when it is scraped. */
import { Histogram } from "prom-client";
import { type DurationCounts, readHistogram } from "./duration-counts.ts";

export interface LabelledCounts {
  readonly labels: Readonly<Record<string, string>>;
  readonly counts: DurationCounts;
}

interface Sample {
  readonly metricName: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

/** @param read - One series of buckets per element. */
export function durationHistogram(
  name: string,
  help: string,
  read: () => readonly LabelledCounts[],
): Histogram {
  const histogram = new Histogram({ name, help, registers: [] });
  const reading = async (): Promise<object> => ({
    name,
    help,
    type: "histogram",
    aggregator: "sum",
    values: read().flatMap((series) => samplesOf(name, series)),
  });
  // A registry asks the first of these when it renders text, and the other one for JSON.
  return Object.assign(histogram, { getForPromString: reading, get: reading });
}

function samplesOf(name: string, { labels, counts }: LabelledCounts): Sample[] {
  const { buckets, sumSeconds, count } = readHistogram(counts);
  return [
    ...buckets.map((bucket) => ({
      metricName: `${name}_bucket`,
      labels: { ...labels, le: bucket.leSeconds === Infinity ? "+Inf" : bucket.leSeconds },
      value: bucket.count,
    })),
    { metricName: `${name}_sum`, labels, value: sumSeconds },
    { metricName: `${name}_count`, labels, value: count },
  ];
}
