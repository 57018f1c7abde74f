/**
 * What happened to every request of a run, as the load generator saw it.
 *
 * All instants are of the machine's monotonic clock, which every process of the machine reads
 * alike, so records of several pods can be put in one order.
 */
import type { InstantUs } from "../src/core/units.ts";

/** Fields of one record, doubles in this order. */
export const RECORD = {
  /** Number of the pod, from 1. */
  pod: 0,
  /** When the schedule wanted it sent, us. */
  dueUs: 1,
  sentUs: 2,
  /** When the last byte of its answer was read, us; of a failed one, when it was given up. */
  answeredUs: 3,
  /** One of `OUTCOME`. */
  outcome: 4,
  /** Index in `SOURCES`. */
  source: 5,
  /** One of `LIMIT`. */
  limit: 6,
} as const;
export const RECORD_FIELDS = 7;

/** The limit that is measured, and the one whose tokens are counted in the store as well. */
export const LIMIT = { measured: 0, counted: 1 } as const;

export const OUTCOME = { denied: 0, admitted: 1, failed: 2 } as const;

/** Who decided, as the answer told; the last one is for requests that got none. */
export const SOURCES = ["local", "store", "fallback", "none"] as const;

/** Most records of one run: they are kept in memory, 56 bytes each. */
export const RECORDS_MAX = 5_000_000;

export interface Arrival {
  readonly pod: number;
  readonly dueUs: InstantUs;
  readonly sentUs: InstantUs;
  readonly answeredUs: InstantUs;
  readonly outcome: number;
  readonly source: number;
  readonly limit: number;
}

export class Journal {
  readonly #parts: Float64Array[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Takes whole records, `RECORD_FIELDS` doubles each. */
  add(records: Float64Array): void {
    this.#parts.push(records);
    this.#size += records.length / RECORD_FIELDS;
  }

  *[Symbol.iterator](): Generator<Arrival> {
    for (const part of this.#parts) yield* arrivalsOf(part);
  }

  /** The requests of one limit. */
  *of(limit: number): Generator<Arrival> {
    for (const arrival of this) if (arrival.limit === limit) yield arrival;
  }
}

/** The records of one part, in order. */
export function* arrivalsOf(part: Float64Array): Generator<Arrival> {
  for (let at = 0; at < part.length; at += RECORD_FIELDS) {
    yield {
      pod: part[at + RECORD.pod] as number,
      dueUs: part[at + RECORD.dueUs] as number,
      sentUs: part[at + RECORD.sentUs] as number,
      answeredUs: part[at + RECORD.answeredUs] as number,
      outcome: part[at + RECORD.outcome] as number,
      source: part[at + RECORD.source] as number,
      limit: part[at + RECORD.limit] as number,
    };
  }
}
