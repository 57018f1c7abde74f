/**
 * An attacker who knows the algorithm: let all pods fetch stock, drain the bucket through a few,
 * then spend everything that every pod still holds at one instant. The phases are drawn from the
 * seed, a new draw for each attack; the bucket is full again before the next.
 */
import type { DurationUs } from "../../src/core/units.ts";
import { LAN } from "../network.ts";
import type { Prng } from "../prng.ts";
import type { Scenario } from "../scenario.ts";
import { ONE_CHECK, type Salvo, salvos } from "../traffic.ts";
import { longRun, withinBound } from "../verdicts.ts";
import type { Workload } from "../workload.ts";
import { limitOf, SECOND, scenarioOf } from "./scenario-of.ts";

const ATTACKS = 10;

interface Target {
  readonly pods: number;
  readonly burst: number;
  readonly intervalMs: number;
}

function restUs({ burst }: Target): DurationUs {
  return (burst / 1000) * SECOND + 2 * SECOND;
}

function attacks(target: Target): Workload {
  return {
    summary: `${ATTACKS} attacks of random phases`,
    start(setup) {
      const list: Salvo[] = [];
      for (let i = 1; i <= ATTACKS; i += 1) {
        list.push(...attack(setup.random, target, i * (restUs(target) + SECOND)));
      }
      return salvos("", list).start(setup);
    },
  };
}

function attack(random: Prng, { pods, burst }: Target, atUs: number): Salvo[] {
  const warmUs = Math.round(random.between(20_000, 600_000));
  const each = 1 + random.below(Math.max(2, Math.round(burst / (4 * pods))));
  const gapUs = random.chance(0.5) ? 0 : random.below(500_000);
  const hot = 1 + random.below(Math.max(1, Math.floor(pods / 2)));
  const drain = Math.max(1, Math.round(burst * random.between(0.3, 1.5)));
  const drainUs = Math.round(random.between(20_000, 600_000));
  const strikeUs = atUs + warmUs + gapUs + drainUs + random.below(100_000);
  return [
    // Lukewarm: every pod learns of the key and gets a part of the stock.
    {
      atUs,
      count: each * pods,
      spacingUs: Math.max(1, Math.floor(warmUs / (each * pods))),
      pod: (n) => n % pods,
      checks: ONE_CHECK,
    },
    {
      atUs: atUs + warmUs + gapUs,
      count: drain,
      spacingUs: Math.max(1, Math.floor(drainUs / drain)),
      pod: (n) => n % hot,
      checks: ONE_CHECK,
    },
    {
      atUs: strikeUs,
      count: pods * Math.ceil((1.5 * burst) / pods + 20),
      pod: (n) => n % pods,
      checks: ONE_CHECK,
    },
  ];
}

function adversary(name: string, target: Target, given: Partial<Scenario>): Scenario {
  const { pods, burst, intervalMs } = target;
  return scenarioOf("adversary", {
    name,
    question: `An attacker knows the rules: ${pods} pods, b = ${burst}, I = ${intervalMs} ms?`,
    pods,
    seeds: [1, 2, 3, 4],
    durationUs: (ATTACKS + 1) * (restUs(target) + SECOND) + SECOND,
    limits: [limitOf({ burst, intervalMs })],
    workload: attacks(target),
    verdicts: [withinBound(), longRun()],
    ...given,
  });
}

export const ADVERSARY: readonly Scenario[] = [
  adversary("adversary", { pods: 20, burst: 1000, intervalMs: 100 }, { tags: ["ci"] }),
  adversary("adversary-2-pods", { pods: 2, burst: 5000, intervalMs: 50 }, {}),
  adversary("adversary-5-pods", { pods: 5, burst: 1000, intervalMs: 100 }, {}),
  adversary("adversary-60-pods", { pods: 60, burst: 300, intervalMs: 100 }, {}),
  adversary("adversary-slow-interval", { pods: 20, burst: 5000, intervalMs: 300 }, {}),
  adversary(
    "adversary-far-store",
    { pods: 20, burst: 1000, intervalMs: 100 },
    { link: { ...LAN, baseUs: 15_000, jitterUs: 15_000 } },
  ),
];
