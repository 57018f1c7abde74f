/** Puts together what a run measured, after its end. */
import type { KeyMeter } from "./meter.ts";
import type { LimitRecord, PodRecord } from "./recorder.ts";
import {
  type CostResult,
  type FleetResult,
  type IntegrityResult,
  type LatencyResult,
  type LimitResult,
  type PodResult,
  type RunResult,
  type Settling,
  SPANS_SECONDS,
} from "./run-result.ts";
import { fairness, oscillation, settlingAfter } from "./settling.ts";
import type { World } from "./world.ts";

export function resultOf(world: World, scheme: string, tookMs: number): RunResult {
  const { scenario, recorder, checker } = world;
  const integrity = integrityOf(world);
  if (integrity.forgotten > 0) {
    checker.violated("answer", `${integrity.forgotten} requests at live pods were never answered`);
  }
  return {
    scenario: scenario.name,
    scheme,
    seed: world.seed,
    durationUs: scenario.durationUs,
    podsAtStart: scenario.pods,
    limits: recorder.limits.map((record) => limitOf(world, record)),
    fleet: fleetOf(world),
    cost: costOf(world),
    integrity,
    latency: latencyOf(recorder.heldUs, recorder.requests),
    settling: settlingOf(world),
    events: recorder.events,
    violations: checker.violations,
    traceHash: world.trace.digest(),
    worldEvents: world.loop.events,
    tookMs,
  };
}

function limitOf(world: World, record: LimitRecord): LimitResult {
  const { durationUs } = world.scenario;
  let worst: { key: string; meter: KeyMeter } | undefined;
  let debtMean = 0;
  const overAdmission = SPANS_SECONDS.map(() => Number.NEGATIVE_INFINITY);
  for (const [key, meter] of record.meters) {
    debtMean += meter.debtMean(durationUs, durationUs);
    if (worst === undefined || meter.excess > worst.meter.excess) worst = { key, meter };
    for (const [i, seconds] of SPANS_SECONDS.entries()) {
      const allowed = record.first.burst + record.first.rate * seconds;
      const over = (meter.spanMaxima[i] ?? 0) / allowed - 1;
      overAdmission[i] = Math.max(overAdmission[i] ?? over, over);
    }
  }
  const million = record.requests === 0 ? 0 : 1e6 / record.requests;
  return {
    name: record.first.name,
    rate: record.first.rate,
    burst: record.first.burst,
    keys: record.meters.size,
    offered: record.offered,
    admitted: record.admitted,
    ideal: record.ideal,
    admittedMeasured: record.admittedMeasured,
    idealMeasured: record.idealMeasured,
    utilisation: record.idealMeasured === 0 ? 1 : record.admittedMeasured / record.idealMeasured,
    excess: worst?.meter.excess ?? 0,
    excessAtUs: worst?.meter.excessAtUs ?? 0,
    excessKey: worst?.key ?? "",
    bound: world.boundOf(record.first),
    overAdmission: overAdmission.map((over) => (Number.isFinite(over) ? over : -1)),
    debtMean,
    falseDenialsPerMillion: record.falseDenials * million,
    falseAdmitsPerMillion: record.falseAdmits * million,
    offeredSeries: [...record.offeredSeries],
    admittedSeries: [...record.admittedSeries],
    idealSeries: [...record.idealSeries],
    debtSeries: [...record.debtSeries],
  };
}

function fleetOf(world: World): FleetResult {
  const { recorder, scenario } = world;
  const pods = fairness(recorder.pods.values());
  const total = totalSeries(recorder.limits.map((record) => record.admittedSeries));
  const measuredS = Math.max(1, scenario.durationUs - scenario.measureFromUs) / 1e6;
  let admitted = 0;
  for (const record of recorder.limits) admitted += record.admittedMeasured;
  return {
    perPod: [...recorder.pods.values()].map((record) => podOf(record, total)),
    jain: pods.jain,
    ratioMin: pods.min,
    ratioMax: pods.max,
    podsSeries: [...recorder.podsSeries],
    jainClients: fairness(recorder.clients.values()).jain,
    requests: recorder.requests,
    requestsAdmitted: recorder.requestsAdmitted,
    admittedPerSecond: admitted / measuredS,
    oscillation: oscillation(total),
  };
}

function podOf(record: PodRecord, total: ArrayLike<number>): PodResult {
  const part = (tokens: number, i: number): number => {
    const all = total[i] ?? 0;
    return all === 0 ? 0 : tokens / all;
  };
  return {
    pod: record.pod,
    offered: record.offered,
    admitted: record.admitted,
    joinedAtUs: record.joinedAtUs,
    endedAtUs: record.endedAtUs,
    admittedSeries: Array.from(record.admittedSeries, part),
    shareSeries: record.shareSeries,
  };
}

function costOf(world: World): CostResult {
  const { recorder, scenario } = world;
  let admitted = 0;
  for (const record of recorder.limits) admitted += record.admitted;
  return {
    storeCalls: recorder.calls,
    keyOperations: recorder.keyOperations,
    bytes: recorder.bytes,
    callsPerAdmit: admitted === 0 ? 0 : recorder.calls / admitted,
    keyOperationsPerAdmit: admitted === 0 ? 0 : recorder.keyOperations / admitted,
    callsPerSecond: recorder.calls / (scenario.durationUs / 1e6),
    keyOperationsPerSecondMax: recorder.keyOperationsPerSecondMax,
    inFlightMax: recorder.inFlightMax,
    callsSeries: [...recorder.callsSeries],
  };
}

function integrityOf(world: World): IntegrityResult {
  const { fleet, network, run } = world;
  const store = run.inspect?.();
  let [clipped, podsError, forgotten] = [0, 0, 0];
  const truth = fleet.serving.length;
  for (const pod of fleet.pods.values()) {
    const figures = pod.node.inspect?.();
    forgotten += pod.open;
    clipped += figures?.clipped ?? 0;
    if (figures?.pods !== undefined) {
      podsError = Math.max(podsError, Math.abs(figures.pods - truth));
    }
  }
  return {
    duplicatesAbsorbed: store?.duplicates ?? 0,
    clippedDebt: clipped,
    ledgerLeak: store === undefined ? 0 : store.ledger - world.checker.stockOut,
    podsError,
    unanswered: fleet.abandoned + forgotten,
    forgotten,
    messagesLost: network.lost,
    messagesDuplicated: network.duplicated,
  };
}

function latencyOf(heldUs: readonly number[], requests: number): LatencyResult {
  const sorted = Float64Array.from(heldUs).sort();
  const at = (part: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0;
  return {
    held: sorted.length,
    heldPart: requests === 0 ? 0 : sorted.length / requests,
    p50Us: at(0.5),
    p99Us: at(0.99),
    p999Us: at(0.999),
    maxUs: at(1),
  };
}

function settlingOf(world: World): Settling[] {
  const { marks, durationUs } = world.scenario;
  const admitted = totalSeries(world.recorder.limits.map((record) => record.admittedSeries));
  const ideal = totalSeries(world.recorder.limits.map((record) => record.idealSeries));
  return marks.map((mark, i) =>
    settlingAfter(mark, marks[i + 1]?.atUs ?? durationUs, admitted, ideal),
  );
}

function totalSeries(series: readonly ArrayLike<number>[]): Float64Array {
  const total = new Float64Array(series[0]?.length ?? 0);
  for (const one of series) {
    for (let i = 0; i < total.length; i += 1) total[i] = (total[i] ?? 0) + (one[i] ?? 0);
  }
  return total;
}
