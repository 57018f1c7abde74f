/**
 * The meta record of a lane: one clock for all calls, and the memory of data losses. Twin of
 * `lua/lib/lane.lua`, which explains the rules.
 */
import type { DurationUs, InstantUs } from "../../core/units.ts";
import { isStorable, max, min } from "./arithmetic.ts";

/** Length of the shortest absence of pods that lowers the band. */
const BAND_HOLD_US: DurationUs = 60_000_000;

/** Twelve doubles in the order of the stored value. */
export interface LaneRecord {
  epoch: number;
  created: InstantUs;
  /** When keys were lost, 0 for never. */
  lostAt: InstantUs;
  /** Corrected time less the server's own, us. */
  offset: number;
  /** Last corrected time. */
  last: InstantUs;
  /** Number of the server process that the record was written on, 0 for not known. */
  run: number;
  /** When another process was found in its place, 0 for never. */
  movedAt: InstantUs;
  /** When a key was last put under other terms or replaced, 0 for never. */
  changedAt: InstantUs;
  /** Members that the last heartbeat left; used in lane 0, as are the next three. */
  members: number;
  /** Smallest power of two not below the members, lowered late. */
  band: number;
  /** What it would be by the highest count since `nextSince`; 0 while it is in force. */
  nextBand: number;
  nextSince: InstantUs;
}

/** What the calling pod knows of the lane's clock. */
export interface LaneReference {
  /** Epoch as the pod last heard it; 0 for never. */
  readonly epoch: number;
  /** Corrected time of the last reply heard; 0 for none. */
  readonly heardAtUs: InstantUs;
  /** Time since the call that this reply answered was sent. */
  readonly heardAgoUs: DurationUs;
  /** Steps of the server's clock below this pass for delay. */
  readonly toleranceUs: DurationUs;
  /** Number of the server process; 0 when the caller does not know it. */
  readonly run: number;
}

/**
 * Moves the lane's clock to the server's time `rawUs`; `record.last` is then the corrected time.
 *
 * @param record - As the last call left it; undefined when it was lost or never was.
 * @param damaged - Something was stored that could not be read, so keys may have been lost.
 */
export function openLane(
  record: LaneRecord | undefined,
  rawUs: InstantUs,
  reference: LaneReference,
  damaged: boolean,
): LaneRecord {
  const { epoch, heardAtUs, heardAgoUs, toleranceUs, run } = reference;
  const lane = record ?? newLane(rawUs, damaged || epoch !== 0);
  // Another pod renewed the record after a loss and did not know of it.
  if (epoch !== 0 && epoch !== lane.epoch && lane.lostAt === 0) lane.lostAt = lane.created;
  let now = rawUs + lane.offset;
  if (now < lane.last) {
    lane.offset = lane.offset + (lane.last - now);
    now = lane.last;
  }
  if (heardAtUs > 0 && epoch === lane.epoch) {
    const ahead = now - heardAtUs - Math.floor(heardAgoUs);
    if (ahead > toleranceUs) {
      const cut = min(ahead, now - lane.last);
      lane.offset = lane.offset - cut;
      now = now - cut;
    }
  }
  lane.last = now;
  if (run > 0) {
    if (lane.run > 0 && lane.run !== run) lane.movedAt = now;
    lane.run = run;
  }
  return lane;
}

/** Follows the number of members: up at once, down when a minute's counts all fitted below. */
export function followBand(lane: LaneRecord, members: number): void {
  let fit = 1;
  while (fit < members) fit *= 2;
  if (fit >= lane.band) {
    setBand(lane, fit);
  } else if (lane.nextBand === 0) {
    lane.nextBand = fit;
    lane.nextSince = lane.last;
  } else {
    lane.nextBand = max(lane.nextBand, fit);
    if (lane.last - lane.nextSince >= BAND_HOLD_US) setBand(lane, lane.nextBand);
  }
}

function setBand(lane: LaneRecord, band: number): void {
  lane.band = band;
  lane.nextBand = 0;
  lane.nextSince = 0;
}

function newLane(rawUs: InstantUs, lost: boolean): LaneRecord {
  return {
    epoch: rawUs + 1,
    created: rawUs,
    lostAt: lost ? rawUs : 0,
    offset: 0,
    last: rawUs,
    run: 0,
    movedAt: 0,
    changedAt: 0,
    members: 0,
    band: 0,
    nextBand: 0,
    nextSince: 0,
  };
}

/** The stored value of a record. */
export function packLane(lane: LaneRecord): Float64Array {
  const { epoch, created, lostAt, offset, last, run, movedAt, changedAt } = lane;
  const { members, band, nextBand, nextSince } = lane;
  const clock = [epoch, created, lostAt, offset, last, run, movedAt, changedAt];
  return new Float64Array([...clock, members, band, nextBand, nextSince]);
}

/** Doubles of a stored record. */
export const LANE_FIELDS = 12;

/** The record of a stored value, or undefined when it cannot be one. */
export function unpackLane(numbers: Float64Array): LaneRecord | undefined {
  if (numbers.length !== LANE_FIELDS || !numbers.every(isStorable)) return undefined;
  const [epoch = 0, created = 0, lostAt = 0, offset = 0, last = 0, ...rest] = numbers;
  if (!(epoch > 0 && created > 0 && lostAt >= 0 && last >= 0)) return undefined;
  if (!rest.every((x) => x >= 0)) return undefined;
  const [run = 0, movedAt = 0, changedAt = 0, ...roster] = rest;
  const [members = 0, band = 0, nextBand = 0, nextSince = 0] = roster;
  const clock = { epoch, created, lostAt, offset, last, run, movedAt, changedAt };
  return { ...clock, members, band, nextBand, nextSince };
}
