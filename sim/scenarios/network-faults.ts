/** Bad networks and bad pods: slow, lossy and repeating links, partitions, stalls, clocks. */
import type { Fault } from "../fault-plan.ts";
import { LAN } from "../network.ts";
import type { Scenario } from "../scenario.ts";
import { traffic } from "../traffic.ts";
import {
  duplicatesAbsorbed,
  excessAtMost,
  excessPartOfBurst,
  longRun,
  rateAtLeast,
  rateAtMost,
  settlesWithin,
  utilisationAtLeast,
  withinBound,
} from "../verdicts.ts";
import { podRange, SECOND, scenarioOf } from "./scenario-of.ts";

const LINKS = "links";
const PARTITIONS = "partitions";
const PODS = "pods that stand still";

const DOUBLE = traffic("2 r over all pods", [{ perSecond: 2000 }]);
const SMALL_LOAD = traffic("0.5 r over all pods", [{ perSecond: 500 }]);

function roundTrip(ms: number, util: number): Scenario {
  return scenarioOf(LINKS, {
    name: `rtt-${ms}ms`,
    question: `Mean round trip of ${ms} ms: what does distance cost?`,
    link: { ...LAN, baseUs: ms * 250, jitterUs: ms * 250 },
    workload: traffic("10 r for 1 s of 5, else 0.9 r", [
      { perSecond: (atUs) => (atUs % (5 * SECOND) < SECOND ? 10_000 : 900), perSecondMax: 10_000 },
    ]),
    verdicts: [withinBound(), longRun(), utilisationAtLeast(util)],
  });
}

function lossy(name: string, loss: number, given: Partial<Scenario>): Scenario {
  return scenarioOf(LINKS, {
    name,
    question: `${loss * 100} % of the messages lost each way: is anything counted twice or never?`,
    link: { ...LAN, loss },
    workload: DOUBLE,
    verdicts: [withinBound(), longRun(), utilisationAtLeast(0.97), duplicatesAbsorbed()],
    ...given,
  });
}

function cut(atS: number, forS: number, pods: readonly number[]): () => Fault[] {
  return () => [{ kind: "partition", atUs: atS * SECOND, forUs: forS * SECOND, pods, way: "both" }];
}

/** @param excess - Tokens until connected pods know; see the design on detection. */
function partition(name: string, cutPods: number, excess: number): Scenario {
  return scenarioOf(PARTITIONS, {
    name,
    question: `${cutPods} of 20 pods cut off from the store for 12 s, Kubernetes lists them still?`,
    kind: "liveness",
    durationUs: 40 * SECOND,
    workload: DOUBLE,
    terms: { membership: "listed", podsFactor: 1 },
    faults: cut(10, 12, podRange(0, cutPods)),
    marks: [
      { atUs: 10 * SECOND, name: "partition" },
      { atUs: 22 * SECOND, name: "repair" },
    ],
    verdicts: [
      excessAtMost(excess),
      rateAtMost(15 * SECOND, 22 * SECOND, 1.02),
      rateAtLeast(15 * SECOND, 22 * SECOND, 0.85),
      rateAtLeast(28 * SECOND, 40 * SECOND, 0.97),
    ],
  });
}

export const NETWORK_FAULTS: readonly Scenario[] = [
  roundTrip(1, 0.98),
  roundTrip(20, 0.97),
  roundTrip(60, 0.9),
  roundTrip(100, 0.85),
  lossy("loss-10", 0.1, { tags: ["ci"] }),
  lossy("loss-30", 0.3, {}),
  scenarioOf(LINKS, {
    name: "duplicates-and-reordering",
    question: "One message in five comes twice, one in five 30 ms late: is it all applied once?",
    tags: ["ci"],
    link: { ...LAN, duplicate: 0.2, reorder: 0.2, reorderUs: 30_000 },
    workload: DOUBLE,
    verdicts: [excessAtMost(60), longRun(), utilisationAtLeast(0.98), duplicatesAbsorbed()],
  }),
  scenarioOf(LINKS, {
    name: "one-way-loss",
    question:
      "Requests reach the store and replies do not, for 1 s at half the pods, again and again?",
    workload: DOUBLE,
    faults: () =>
      [5, 8, 11, 14, 17, 20].map((second) => ({
        kind: "partition",
        atUs: second * SECOND,
        forUs: SECOND,
        pods: podRange(0, 10),
        way: "from-store",
      })),
    // Half the fleet spends for a second what nobody hears of: no promise is tighter than that.
    verdicts: [excessPartOfBurst(0.65), utilisationAtLeast(0.95), duplicatesAbsorbed()],
  }),
  scenarioOf(LINKS, {
    name: "hold-and-release",
    question:
      "Messages of half the pods wait 3 s in a buffer and arrive at once: does the past count?",
    kind: "liveness",
    workload: DOUBLE,
    faults: () => [
      { kind: "hold", atUs: 10 * SECOND, forUs: 3 * SECOND, pods: podRange(0, 10), way: "both" },
    ],
    marks: [{ atUs: 13 * SECOND, name: "release" }],
    verdicts: [settlesWithin(5 * SECOND), rateAtLeast(20 * SECOND, 30 * SECOND, 0.97)],
  }),
  partition("partition-5", 1, 200),
  partition("partition-30", 6, 850),
  partition("partition-50", 10, 1350),
  scenarioOf(PARTITIONS, {
    name: "partition-30-no-listing",
    question: "30 % cut off and nobody but the store counts pods: how much is too much?",
    durationUs: 40 * SECOND,
    workload: DOUBLE,
    faults: cut(10, 12, podRange(0, 6)),
    verdicts: [
      rateAtMost(16 * SECOND, 22 * SECOND, 1.3),
      rateAtLeast(30 * SECOND, 40 * SECOND, 0.97),
    ],
  }),
  scenarioOf(PARTITIONS, {
    name: "partition-all",
    question: "The network is gone for everybody for 10 s: does the fleet stay within the margin?",
    kind: "liveness",
    tags: ["ci"],
    workload: DOUBLE,
    faults: cut(10, 10, podRange(0, 20)),
    marks: [{ atUs: 20 * SECOND, name: "repair" }],
    verdicts: [
      rateAtMost(12 * SECOND, 20 * SECOND, 0.9 * 1.01),
      rateAtLeast(12 * SECOND, 20 * SECOND, 0.88),
      excessPartOfBurst(0.3),
      settlesWithin(5 * SECOND),
    ],
  }),
  scenarioOf(PODS, {
    name: "stall-2s",
    question: "Five of twenty event loops stand still for 2 s with requests waiting: what follows?",
    tags: ["ci"],
    workload: DOUBLE,
    faults: () => [
      { kind: "stall", atUs: 10 * SECOND, forUs: 2 * SECOND, pods: podRange(0, 5) },
      { kind: "stall", atUs: 20 * SECOND, forUs: 100_000, pods: podRange(5, 15) },
    ],
    verdicts: [excessPartOfBurst(0.1), utilisationAtLeast(0.97)],
  }),
  scenarioOf(PODS, {
    name: "stall-10s",
    question: "Three pods stand still for 10 s, longer than the membership's patience?",
    durationUs: 40 * SECOND,
    workload: DOUBLE,
    faults: () => [{ kind: "stall", atUs: 10 * SECOND, forUs: 10 * SECOND, pods: podRange(0, 3) }],
    verdicts: [excessPartOfBurst(0.1), rateAtLeast(25 * SECOND, 40 * SECOND, 0.97)],
  }),
  scenarioOf(PODS, {
    name: "vm-pause-5s",
    question: "The machines of five pods stand still for 5 s, clocks included?",
    workload: DOUBLE,
    faults: () => [{ kind: "pause", atUs: 10 * SECOND, forUs: 5 * SECOND, pods: podRange(0, 5) }],
    verdicts: [excessPartOfBurst(0.1), rateAtLeast(21 * SECOND, 30 * SECOND, 0.97)],
  }),
  scenarioOf(PODS, {
    name: "pod-clocks",
    question: "Pods' clocks run 1 % fast and slow and their wall clocks jump: does anybody notice?",
    workload: DOUBLE,
    faults: () => [
      { kind: "drift", atUs: 0, pods: podRange(0, 7), rate: 1.01 },
      { kind: "drift", atUs: 0, pods: podRange(7, 14), rate: 0.99 },
      { kind: "pod-clock", atUs: 10 * SECOND, pods: podRange(0, 20), byUs: 3600 * SECOND },
    ],
    verdicts: [withinBound(), longRun(), utilisationAtLeast(0.99)],
  }),
  scenarioOf(PODS, {
    name: "stall-at-half-load",
    question: "The same stalls while the limit is far away: is anybody refused for nothing?",
    workload: SMALL_LOAD,
    faults: () => [{ kind: "stall", atUs: 10 * SECOND, forUs: 2 * SECOND, pods: podRange(0, 5) }],
    verdicts: [withinBound(), utilisationAtLeast(0.97)],
  }),
];
