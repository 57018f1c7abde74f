/** Metrics of the rate limit service for Envoy, beyond those that every limit has. */
import type { Registry } from "prom-client";
import { OUTCOMES, type Outcome } from "../core/tally.ts";
import { counter, type Reading } from "./scraped-metric.ts";

export interface DescriptorFigures {
  /** Descriptors that no rule was for. */
  readonly unmatched: number;
  /** Decisions by values, of rules whose author asked to see them; bounded in number. */
  readonly shown: readonly {
    readonly rule: string;
    readonly descriptor: string;
    readonly counts: Readonly<Record<Outcome, number>>;
  }[];
}

export function registerDescriptors(registry: Registry, figures: () => DescriptorFigures): void {
  counter(registry, "unmatched_descriptors_total", {
    help: "Descriptors of Envoy that no rule was for; they pass.",
    read: () => [[{}, figures().unmatched]],
  });
  counter(registry, "descriptor_decisions_total", {
    help: "Decisions by descriptor, of rules with detailed_metric or value_to_metric.",
    labels: ["limit", "descriptor", "outcome"],
    read: () =>
      figures().shown.flatMap(({ rule, descriptor, counts }) =>
        OUTCOMES.map((outcome): Reading => [{ limit: rule, descriptor, outcome }, counts[outcome]]),
      ),
  });
}
