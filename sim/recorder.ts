/** Takes down what happens in a run, per limit, key, pod and client, and counts what it costs. */
import type { Limit } from "../src/core/limit.ts";
import type { DurationUs, InstantUs, Tokens } from "../src/core/units.ts";
import { KeyMeter } from "./meter.ts";
import { type RunEvent, SERIES_STEP_US } from "./run-result.ts";
import type { SimCheck } from "./scheme.ts";

/** Parties that a fairness index is taken over. */
export interface Party {
  offered: Tokens;
  admitted: Tokens;
}

export interface PodRecord extends Party {
  readonly pod: number;
  readonly joinedAtUs: InstantUs;
  endedAtUs: InstantUs | undefined;
  readonly admittedSeries: Float64Array;
  readonly shareSeries: number[];
}

export class LimitRecord {
  limit: Limit;
  readonly first: Limit;
  readonly meters: Map<string, KeyMeter> = new Map();
  offered = 0;
  admitted = 0;
  ideal = 0;
  admittedMeasured = 0;
  idealMeasured = 0;
  falseDenials = 0;
  falseAdmits = 0;
  requests = 0;
  readonly offeredSeries: Float64Array;
  readonly admittedSeries: Float64Array;
  readonly idealSeries: Float64Array;
  readonly debtSeries: Float64Array;

  constructor(limit: Limit, steps: number) {
    this.limit = limit;
    this.first = limit;
    this.offeredSeries = new Float64Array(steps);
    this.admittedSeries = new Float64Array(steps);
    this.idealSeries = new Float64Array(steps);
    this.debtSeries = new Float64Array(steps);
  }

  meter(key: string, nowUs: InstantUs): KeyMeter {
    let meter = this.meters.get(key);
    if (meter === undefined) {
      meter = new KeyMeter(this.limit, nowUs);
      this.meters.set(key, meter);
    }
    return meter;
  }

  reshape(nowUs: InstantUs, limit: Limit): void {
    this.limit = limit;
    for (const meter of this.meters.values()) {
      meter.virtual.reshape(nowUs, limit);
      meter.ideal.reshape(nowUs, limit);
    }
  }
}

export class Recorder {
  readonly steps: number;
  readonly limits: readonly LimitRecord[];
  readonly pods: Map<number, PodRecord> = new Map();
  readonly clients: Map<number, Party> = new Map();
  readonly events: RunEvent[] = [];
  readonly podsSeries: Float64Array;
  readonly callsSeries: Float64Array;
  readonly heldUs: number[] = [];
  requests = 0;
  requestsAdmitted = 0;
  calls = 0;
  keyOperations = 0;
  bytes = 0;
  inFlight = 0;
  inFlightMax = 0;
  keyOperationsPerSecondMax = 0;
  readonly #measureFromUs: DurationUs;
  readonly #perKey: Map<string, number> = new Map();
  #perKeySecond = -1;

  constructor(limits: readonly Limit[], durationUs: DurationUs, measureFromUs: DurationUs) {
    this.steps = Math.max(1, Math.ceil(durationUs / SERIES_STEP_US));
    this.limits = limits.map((limit) => new LimitRecord(limit, this.steps));
    this.podsSeries = new Float64Array(this.steps);
    this.callsSeries = new Float64Array(this.steps);
    this.#measureFromUs = measureFromUs;
  }

  podJoined(pod: number, nowUs: InstantUs): void {
    const known = this.pods.get(pod);
    if (known !== undefined) {
      known.endedAtUs = undefined;
      return;
    }
    this.pods.set(pod, {
      pod,
      joinedAtUs: nowUs,
      endedAtUs: undefined,
      offered: 0,
      admitted: 0,
      admittedSeries: new Float64Array(this.steps),
      shareSeries: [],
    });
  }

  podEnded(pod: number, nowUs: InstantUs): void {
    const known = this.pods.get(pod);
    if (known !== undefined) known.endedAtUs = nowUs;
  }

  /** A request arrived. @returns Whether ideal buckets admit it. */
  arrived(nowUs: InstantUs, pod: number, client: number, checks: readonly SimCheck[]): boolean {
    const step = this.#step(nowUs);
    const measured = nowUs >= this.#measureFromUs;
    this.requests += 1;
    let holds = true;
    let offered = 0;
    for (const check of checks) {
      const record = this.#limit(check.limit);
      record.requests += 1;
      record.offered += check.cost;
      offered += check.cost;
      bump(record.offeredSeries, step, check.cost);
      holds = record.meter(check.key, nowUs).ideal.holds(nowUs, check.cost) && holds;
    }
    this.#party(this.pods.get(pod), client, offered, 0);
    if (!holds) return false;
    for (const check of checks) {
      const record = this.#limit(check.limit);
      record.meter(check.key, nowUs).ideal.take(nowUs, check.cost);
      record.ideal += check.cost;
      if (measured) record.idealMeasured += check.cost;
      bump(record.idealSeries, step, check.cost);
    }
    return true;
  }

  /**
   * A request was answered.
   *
   * @param observe - Gets the debt of each check's key after an admission.
   */
  answered(
    nowUs: InstantUs,
    request: { pod: number; client: number; checks: readonly SimCheck[]; ideal: boolean },
    allowed: boolean,
    observe: (check: SimCheck, debt: Tokens) => void,
  ): void {
    const step = this.#step(nowUs);
    for (const check of request.checks) {
      const record = this.#limit(check.limit);
      if (request.ideal && !allowed) record.falseDenials += 1;
      if (!request.ideal && allowed) record.falseAdmits += 1;
    }
    if (!allowed) return;
    this.requestsAdmitted += 1;
    let admitted = 0;
    for (const check of request.checks) {
      const record = this.#limit(check.limit);
      record.admitted += check.cost;
      admitted += check.cost;
      if (nowUs >= this.#measureFromUs) record.admittedMeasured += check.cost;
      bump(record.admittedSeries, step, check.cost);
      observe(check, record.meter(check.key, nowUs).admitted(nowUs, check.cost));
    }
    const podRecord = this.pods.get(request.pod);
    this.#party(podRecord, request.client, 0, admitted);
    if (podRecord !== undefined) bump(podRecord.admittedSeries, step, admitted);
  }

  called(nowUs: InstantUs, keys: readonly string[], bytes: number): void {
    this.calls += 1;
    this.keyOperations += keys.length;
    this.bytes += bytes;
    this.inFlight += 1;
    this.inFlightMax = Math.max(this.inFlightMax, this.inFlight);
    bump(this.callsSeries, this.#step(nowUs), 1);
    const second = Math.floor(nowUs / 1_000_000);
    if (second !== this.#perKeySecond) {
      this.#perKey.clear();
      this.#perKeySecond = second;
    }
    for (const key of keys) {
      const count = (this.#perKey.get(key) ?? 0) + 1;
      this.#perKey.set(key, count);
      if (count > this.keyOperationsPerSecondMax) this.keyOperationsPerSecondMax = count;
    }
  }

  callsEnded(calls: number): void {
    this.inFlight -= calls;
  }

  /** Takes the state at the end of a step. */
  sample(nowUs: InstantUs, pods: number): void {
    const step = Math.min(this.steps - 1, Math.floor(nowUs / SERIES_STEP_US) - 1);
    this.podsSeries[step] = pods;
    for (const record of this.limits) {
      let most = 0;
      for (const meter of record.meters.values()) {
        const debt = meter.virtual.debt(nowUs);
        if (debt > most) most = debt;
      }
      record.debtSeries[step] = most;
    }
  }

  #step(nowUs: InstantUs): number {
    return Math.min(this.steps - 1, Math.floor(nowUs / SERIES_STEP_US));
  }

  #limit(index: number): LimitRecord {
    const record = this.limits[index];
    if (record === undefined)
      throw new Error(`a workload names limit ${index}, which is not there`);
    return record;
  }

  #party(pod: PodRecord | undefined, client: number, offered: Tokens, admitted: Tokens): void {
    if (pod !== undefined) {
      pod.offered += offered;
      pod.admitted += admitted;
    }
    if (client === 0) return;
    const party = this.clients.get(client) ?? { offered: 0, admitted: 0 };
    party.offered += offered;
    party.admitted += admitted;
    this.clients.set(client, party);
  }
}

function bump(series: Float64Array, step: number, by: number): void {
  series[step] = (series[step] ?? 0) + by;
}
