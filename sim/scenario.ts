/** A scenario: a named run with pods, workload, plan of faults, and the verdicts it must pass. */
import type { Limit } from "../src/core/limit.ts";
import type { DurationUs } from "../src/core/units.ts";
import type { Autoscaler } from "./autoscaler.ts";
import type { Fault } from "./fault-plan.ts";
import type { LinkQuality } from "./network.ts";
import type { Prng } from "./prng.ts";
import type { RunResult } from "./run-result.ts";
import type { Membership } from "./scheme.ts";
import type { Workload } from "./workload.ts";

/**
 * `ci`: part of the short fixed subset. `quick`: short, many keys or otherwise of use in tests.
 * Everything is part of the whole table.
 */
export type Tag = "ci";

/**
 * `safety`: anything may fail, only bounds and invariants are asked for. `liveness`: faults end and
 * the fleet must come back to full use of the limit.
 */
export type Kind = "safety" | "liveness";

/** A promise as a predicate over what a run measured. */
export interface Verdict {
  /** A sentence that would be true of the product, with its figure. */
  readonly promise: string;
  judge(result: RunResult): Judgement;
}

export interface Judgement {
  readonly passed: boolean;
  /** The figure that decided, in the verdict's own unit. */
  readonly measured: number;
  /** What it was held against. */
  readonly allowed: number;
}

/** Switches of the scheme under test that belong to the scenario. */
export interface SchemeTerms {
  readonly membership: Membership;
  /** Nodes believe in this many times the true number of pods. */
  readonly podsFactor: number;
}

export interface Scenario {
  /** kebab-case, unique. */
  readonly name: string;
  /** What is asked, in one sentence. */
  readonly question: string;
  readonly theme: string;
  readonly kind: Kind;
  readonly tags: readonly Tag[];
  readonly seeds: readonly number[];
  readonly durationUs: DurationUs;
  /** Pods that serve from the start. */
  readonly pods: number;
  readonly limits: readonly Limit[];
  /** Other sets of limits, same order, that `config` faults put in force. */
  readonly configs: readonly (readonly Limit[])[];
  readonly workload: Workload;
  /** Links of every pod unless a fault says otherwise. */
  readonly link: LinkQuality;
  /** Seeded, so that faults may differ from seed to seed. */
  readonly faults: (random: Prng) => readonly Fault[];
  readonly autoscaler?: Autoscaler;
  readonly terms: SchemeTerms;
  /** Instants after which a settling time is wanted, with a name for the report. */
  readonly marks: readonly Mark[];
  /** Measurements that count from here on (utilisation, Jain); excess always counts from 0. */
  readonly measureFromUs: DurationUs;
  readonly verdicts: readonly Verdict[];
}

export interface Mark {
  readonly atUs: DurationUs;
  readonly name: string;
}
