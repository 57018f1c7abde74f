/**
 * A user's scenario file, field by field. Maps are strict, as in the configuration: a misspelt
 * field is a problem, never a default in silence.
 */
import * as z from "zod";
import {
  choiceField,
  durationField,
  keyField,
  list,
  map,
  partField,
  rateField,
  wholeNumberField,
} from "../../src/config/fields.ts";
import type { Rate } from "../../src/config/rate.ts";
import { US_PER_MS, US_PER_SECOND } from "../../src/core/units.ts";
import type { Backoff } from "../workloads/retry-storm.ts";

const HOUR = 3_600 * US_PER_SECOND;
const PODS_MAX = 1_000;
const COST_MAX = 1_000_000_000;

export const SHAPES = [
  "even",
  "hot-pod",
  "hot-with-background",
  "moving-hot-pod",
  "zipf-over-pods",
  "bursts",
  "ramp",
  "aligned",
] as const;
export type Shape = (typeof SHAPES)[number];

export interface ScenarioLoad {
  readonly limit?: string | undefined;
  readonly rate?: Rate | undefined;
  readonly shape?: Shape | undefined;
  readonly spacing?: "poisson" | "even" | undefined;
  readonly key?: string | undefined;
  readonly keys?: number | undefined;
  readonly cost?: number | { readonly from: number; readonly to: number } | undefined;
  readonly every?: number | undefined;
  readonly for?: number | undefined;
  readonly otherwise?: Rate | undefined;
  readonly clients?: number | undefined;
  readonly think?: number | undefined;
  readonly backoff?: Backoff | undefined;
  readonly attempts?: number | undefined;
  readonly trace?: string | undefined;
}

export interface ScenarioAutoscaler {
  readonly min: number;
  readonly max: number;
  readonly requests_per_pod: number;
  readonly period: number;
  readonly startup: number;
  readonly up_after: number;
  readonly down_after: number;
  readonly tolerance: number;
}

export interface ScenarioFile {
  readonly duration: number;
  readonly seed: number;
  readonly pods?: number | undefined;
  readonly autoscaler?: ScenarioAutoscaler | undefined;
  readonly round_trip: number;
  readonly load: readonly ScenarioLoad[];
  readonly faults: readonly string[];
}

const span = (): z.ZodType<number, string> => durationField(US_PER_MS, HOUR);
const wait = (): z.ZodType<number, string> => durationField(0, HOUR);

const autoscaler = map("A Kubernetes autoscaler in place of a fixed number of pods.", {
  min: wholeNumberField(1, PODS_MAX),
  max: wholeNumberField(1, PODS_MAX),
  requests_per_pod: wholeNumberField(1),
  period: span().prefault("15s"),
  startup: wait().prefault("5s"),
  up_after: wait().prefault("0s"),
  down_after: wait().prefault("5m"),
  tolerance: partField().prefault(0.1),
});

const cost = z.union(
  [
    wholeNumberField(1, COST_MAX),
    map("Costs with a heavy tail.", {
      from: wholeNumberField(1, COST_MAX),
      to: wholeNumberField(1, COST_MAX),
    }),
  ],
  { error: "must be a whole number of at least 1, or a map with from and to" },
);

const load = map("Who asks for what.", {
  limit: z.string({ error: "must be the name of a limit" }).optional(),
  rate: rateField().optional(),
  shape: choiceField(SHAPES).optional(),
  spacing: choiceField(["poisson", "even"]).optional(),
  key: keyField().optional(),
  keys: wholeNumberField(1, 1_000_000).optional(),
  cost: cost.optional(),
  every: span().optional(),
  for: span().optional(),
  otherwise: rateField().optional(),
  clients: wholeNumberField(1, 100_000).optional(),
  think: span().optional(),
  backoff: choiceField(["none", "exponential", "retry-after", "retry-after-jitter"]).optional(),
  attempts: wholeNumberField(1, 1_000_000).optional(),
  trace: z.string({ error: "must be the path of a CSV file" }).min(1).optional(),
});

export const scenarioSchema: z.ZodType<ScenarioFile> = map("A scenario.", {
  duration: durationField(US_PER_SECOND, HOUR),
  seed: wholeNumberField(0, 0xffff_ffff).prefault(1),
  pods: wholeNumberField(1, PODS_MAX).optional(),
  autoscaler: autoscaler.optional(),
  round_trip: durationField(US_PER_MS, US_PER_SECOND).prefault("4ms"),
  load: list(load, 1, 100),
  faults: list(
    z.string({ error: "must be a line such as 20s store-down for=5s how=hang" }),
    0,
    200,
  ).prefault([]),
}) as unknown as z.ZodType<ScenarioFile>;

/** Names that the map at a place may hold, for the advice on unknown ones. */
export function fieldNames(path: readonly PropertyKey[]): readonly string[] {
  const [first] = path;
  if (first === "autoscaler") return Object.keys(autoscaler.shape);
  if (first === "load") return path.length > 2 ? ["from", "to"] : Object.keys(load.shape);
  return ["duration", "seed", "pods", "autoscaler", "round_trip", "load", "faults"];
}
