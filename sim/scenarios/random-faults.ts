/**
 * Draws a plan of faults: any kind, at any time, on any pods. The seed chooses, the plan is data.
 */
import type { DurationUs } from "../../src/core/units.ts";
import type { Fault, Way } from "../fault-plan.ts";
import type { Prng } from "../prng.ts";
import { podRange } from "./scenario-of.ts";

export interface RandomTerms {
  /** All faults have ended by then. */
  readonly untilUs: DurationUs;
  readonly pods: number;
  readonly count: number;
}

/** No fault begins before: a fleet that has never been well proves little. */
const FROM_US = 3_000_000;

export function randomFaults(random: Prng, terms: RandomTerms): Fault[] {
  return Array.from({ length: terms.count }, () => randomFault(random, terms));
}

function randomFault(random: Prng, { untilUs, pods: podCount }: RandomTerms): Fault {
  const atUs = FROM_US + random.below(Math.max(1, untilUs - FROM_US - 1_000_000));
  const forUs = Math.min(untilUs - atUs, Math.round(50_000 * 2 ** random.between(0, 7)));
  const pods = podRange(0, podCount).filter(() => random.chance(0.3));
  if (pods.length === 0) pods.push(random.below(podCount));
  const ways: readonly Way[] = ["both", "to-store", "from-store"];
  const way = ways[random.below(ways.length)] ?? "both";
  const makers: readonly (() => Fault)[] = [
    () => ({ kind: "join", atUs, count: 1 + random.below(10) }),
    () => ({ kind: "leave", atUs, pods: pods.slice(0, 3) }),
    () => ({ kind: "crash", atUs, pods: pods.slice(0, 3) }),
    () => ({ kind: "bounce", atUs, forUs, pods: pods.slice(0, 4) }),
    () => ({ kind: "stall", atUs, forUs, pods }),
    () => ({ kind: "pause", atUs, forUs, pods }),
    () => ({ kind: "drift", atUs, pods, rate: random.between(0.99, 1.01) }),
    () => ({ kind: "partition", atUs, forUs, pods, way }),
    () => ({ kind: "hold", atUs, forUs, pods, way }),
    () => ({
      kind: "link",
      atUs,
      forUs,
      pods,
      loss: random.between(0, 0.3),
      duplicate: random.between(0, 0.3),
      reorder: random.between(0, 0.3),
      lateUs: random.below(60_000),
      delayUs: random.below(20_000),
    }),
    () => ({ kind: "store-down", atUs, forUs, how: random.chance(0.5) ? "hang" : "refuse" }),
    () => ({ kind: "store-slow", atUs, forUs, byUs: random.below(100_000) }),
    () => ({ kind: "store-failover", atUs, lagUs: 10_000 + random.below(1_000_000) }),
    () => ({ kind: "store-empty", atUs }),
    () => ({ kind: "store-clock", atUs, byUs: Math.round(random.between(-10, 10) * 1e6) }),
  ];
  const make = makers[random.below(makers.length)];
  if (make === undefined) throw new Error("no maker was drawn");
  return make();
}
