/** What the gRPC benchmark tells of a server, from the counts of its rounds. */
import type { GrpcCount } from "./grpc-load.ts";
import { type RoundTimes, roundTimes } from "./times.ts";

export interface GrpcSide {
  /** Answers per second of each round. */
  readonly perSecond: readonly number[];
  /** The server's processor time per call, in us, of each round: all its threads. */
  readonly processorUs: readonly number[];
  /** Part of a core that the server used. */
  readonly busy: number;
}

export interface CallTimes {
  readonly rounds: readonly RoundTimes[];
  /** Over all rounds. */
  readonly overall: RoundTimes;
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

export function callTimes(rounds: readonly GrpcCount[]): CallTimes {
  const all = (pick: (round: GrpcCount) => readonly number[]): number[] => rounds.flatMap(pick);
  return {
    rounds: rounds.map(({ times, late }) => roundTimes(times, late)),
    overall: roundTimes(
      all(({ times }) => times),
      all(({ late }) => late),
    ),
    failed: rounds.reduce((sum, { failed }) => sum + failed, 0),
    denied: rounds.reduce((sum, { denied }) => sum + denied, 0),
  };
}
