/** What the gRPC benchmark tells of a server, from the counts of its rounds. */
import type { GrpcCount } from "./grpc-load.ts";

export interface GrpcSide {
  /** Answers per second of each round. */
  readonly perSecond: readonly number[];
  /** The server's processor time per call, in us, of each round: all its threads. */
  readonly processorUs: readonly number[];
  /** Part of a core that the server used. */
  readonly busy: number;
}

export interface CallTimes {
  /** In ms, of each round; a call's time begins when it is due. */
  readonly p50: readonly number[];
  readonly p99: readonly number[];
  /** Over all rounds. */
  readonly overallP99: number;
  readonly longest: number;
  readonly calls: number;
  readonly failed: number;
  readonly denied: number;
}

/** Gathers the rounds of one server. */
export class SideMeter {
  readonly #perSecond: number[] = [];
  readonly #processorUs: number[] = [];
  #spentUs = 0;
  #spanUs = 0;

  add(count: GrpcCount, spentUs: number, spanUs: number): void {
    this.#perSecond.push(count.perSecond);
    this.#processorUs.push(spentUs / count.answers);
    this.#spentUs += spentUs;
    this.#spanUs += spanUs;
  }

  told(): GrpcSide {
    const busy = this.#spentUs / this.#spanUs;
    return { perSecond: this.#perSecond, processorUs: this.#processorUs, busy };
  }
}

export function timesOf(rounds: readonly GrpcCount[]): CallTimes {
  const all = rounds.flatMap(({ times }) => times).sort((a, b) => a - b);
  return {
    p50: rounds.map(({ times }) => partOf(times, 0.5)),
    p99: rounds.map(({ times }) => partOf(times, 0.99)),
    overallP99: partOf(all, 0.99),
    longest: all.at(-1) ?? Number.NaN,
    calls: all.length,
    failed: rounds.reduce((sum, { failed }) => sum + failed, 0),
    denied: rounds.reduce((sum, { denied }) => sum + denied, 0),
  };
}

function partOf(sorted: readonly number[], part: number): number {
  return sorted[Math.ceil(part * sorted.length) - 1] ?? Number.NaN;
}
