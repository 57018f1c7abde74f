/** The live view of a run: what each pod was offered, admitted and said, second by second. */
import type { DurationUs } from "../src/core/units.ts";
import { type Arrival, LIMIT, OUTCOME, SOURCES } from "./journal.ts";
import type { RunOptions } from "./options.ts";
import type { PodStatus } from "./pod.ts";

/** One pod in one second. */
export interface PodSight {
  readonly pod: number;
  readonly offered: number;
  readonly admitted: number;
  readonly failed: number;
  /** Live pods as it counts them; undefined when it did not answer. */
  readonly livePods: number | undefined;
  readonly share: number | undefined;
  readonly fallbackActive: boolean | undefined;
  /** Who decided most of its answers; "-" when there were none. */
  readonly source: string;
}

/** The fleet in one second. */
export interface Sight {
  readonly atSeconds: number;
  readonly pods: readonly PodSight[];
  readonly offered: number;
  readonly admitted: number;
  /** Tokens admitted since the start. */
  readonly admittedTotal: number;
  readonly redis: string;
  /** Steps of the schedule since the last sight. */
  readonly notes: readonly string[];
}

class Counts {
  offered = 0;
  admitted = 0;
  failed = 0;
  readonly bySource: number[] = SOURCES.map(() => 0);

  get source(): string {
    const decided = this.bySource.slice(0, -1);
    const most = Math.max(...decided);
    return most > 0 ? (SOURCES[decided.indexOf(most)] ?? "-") : "-";
  }
}

export class PodWatch {
  readonly sights: Sight[] = [];
  readonly #embedded: boolean;
  readonly #onSight: (sight: Sight) => void;
  #counts: Map<number, Counts> = new Map();
  #notes: string[] = [];
  #admittedTotal = 0;

  constructor(options: RunOptions, onSight: (sight: Sight) => void) {
    this.#embedded = options.embedded;
    this.#onSight = onSight;
  }

  count({ pod, outcome, source, limit }: Arrival): void {
    const counts = this.#countsOf(pod);
    if (limit !== LIMIT.measured) return;
    counts.offered += 1;
    if (outcome === OUTCOME.admitted) {
      counts.admitted += 1;
      this.#admittedTotal += 1;
    }
    if (outcome === OUTCOME.failed) counts.failed += 1;
    counts.bySource[source] = (counts.bySource[source] ?? 0) + 1;
  }

  note(text: string): void {
    this.#notes.push(text);
  }

  /** Closes a second. @param statuses - What the living pods said. */
  look(
    sinceStartUs: DurationUs,
    statuses: ReadonlyMap<number, PodStatus | undefined>,
    redis: string | undefined,
  ): void {
    const numbers = [...new Set([...statuses.keys(), ...this.#counts.keys()])];
    const pods = numbers
      .sort((a, b) => a - b)
      .map((pod): PodSight => {
        const { offered, admitted, failed, source } = this.#countsOf(pod);
        const status = statuses.get(pod);
        const { livePods, share, fallbackActive } = status ?? {};
        return { pod, offered, admitted, failed, livePods, share, fallbackActive, source };
      });
    const sum = (part: (pod: PodSight) => number): number =>
      pods.reduce((total, pod) => total + part(pod), 0);
    const sight: Sight = {
      atSeconds: Math.round(sinceStartUs / 1_000_000),
      pods,
      offered: sum(({ offered }) => offered),
      admitted: sum(({ admitted }) => admitted),
      admittedTotal: this.#admittedTotal,
      redis: this.#embedded ? "none" : (redis ?? "stopped"),
      notes: this.#notes,
    };
    this.#counts = new Map();
    this.#notes = [];
    this.sights.push(sight);
    this.#onSight(sight);
  }

  #countsOf(pod: number): Counts {
    const known = this.#counts.get(pod);
    if (known !== undefined) return known;
    const counts = new Counts();
    this.#counts.set(pod, counts);
    return counts;
  }
}
