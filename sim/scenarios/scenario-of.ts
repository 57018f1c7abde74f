/** Builds scenarios: what a scenario does not say is the setting of the published measurements. */
import { defineLimit, type Fallback, type Limit, type LimitSpec } from "../../src/core/limit.ts";
import { LAN } from "../network.ts";
import type { Scenario, Verdict } from "../scenario.ts";
import { safe } from "../verdicts.ts";
import type { Workload } from "../workload.ts";

export const SECOND = 1_000_000;

/** What most scenarios leave as it is; `verdicts` are added to that of safety. */
type Given = Partial<Omit<Scenario, "name" | "question" | "theme" | "workload">> & {
  readonly name: string;
  readonly question: string;
  readonly workload: Workload;
};

/** 20 pods, r = 1000/s, b = 1000, reconciled every 100 ms, 30 s, seeds 1 to 3. */
export function scenarioOf(theme: string, given: Given): Scenario {
  return {
    kind: "safety",
    tags: [],
    seeds: [1, 2, 3],
    durationUs: 30 * SECOND,
    pods: 20,
    limits: [limitOf({})],
    configs: [],
    link: LAN,
    faults: () => [],
    terms: { membership: "store", podsFactor: 1 },
    marks: [],
    measureFromUs: 0,
    ...given,
    theme,
    verdicts: [safe(), ...(given.verdicts ?? [])],
  };
}

/** `rate` tokens per second, or `tokens` per `spanUs`. */
export function limitOf(
  given: Partial<LimitSpec> & { readonly rate?: number; readonly intervalMs?: number },
): Limit {
  const { rate = 1000, intervalMs = 100, ...rest } = given;
  return defineLimit({
    name: "api",
    tokens: rate,
    spanUs: SECOND,
    burst: rate,
    intervalUs: intervalMs * 1_000,
    fallback: { policy: "local", margin: 0.9, maxPods: 20 },
    ...rest,
  });
}

/** How a scenario is told again for limits in another mode. */
export interface ModeTerms {
  readonly mode: NonNullable<LimitSpec["mode"]>;
  /** What a pod does without the store; default `closed`. */
  readonly policy?: Fallback["policy"];
  /** In place of those of the scenario; that of safety is added. */
  readonly verdicts: readonly Verdict[];
}

/** @throws {Error} When the file has none of that name. */
export function named(file: readonly Scenario[], name: string): Scenario {
  const found = file.find((scenario) => scenario.name === name);
  if (found === undefined) throw new Error(`there is no scenario "${name}" to tell again`);
  return found;
}

/** The scenario `mode-name`: the same load and faults, its limits in the mode given. */
export function inMode(
  base: Scenario,
  { mode, policy = "closed", verdicts }: ModeTerms,
  given: Partial<Scenario> = {},
): Scenario {
  return {
    ...base,
    name: `${mode}-${base.name}`,
    theme: `${mode} limits`,
    tags: [],
    limits: base.limits.map((limit) => limitInMode(limit, mode, policy)),
    configs: base.configs.map((set) => set.map((limit) => limitInMode(limit, mode, policy))),
    ...given,
    verdicts: [safe(), ...verdicts],
  };
}

export function limitInMode(
  limit: Limit,
  mode: NonNullable<LimitSpec["mode"]>,
  policy: Fallback["policy"] = "closed",
): Limit {
  return defineLimit({
    name: limit.name,
    tokens: limit.refill,
    spanUs: limit.period * limit.tickUs,
    burst: limit.burst,
    intervalUs: 100_000,
    mode,
    fallback: { ...limit.fallback, policy },
  });
}

/** Pod numbers from `from` up to but not including `to`. */
export function podRange(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}
