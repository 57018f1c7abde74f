/**
 * The meta record of a lane: one clock for all calls, and the memory of data losses. Twin of
 * `lua/lib/lane.lua`, which explains the rules.
 */
import type { DurationUs, InstantUs } from "../../core/units.ts";
import { isStorable, min } from "./arithmetic.ts";

/** Six doubles in the order of the stored value. */
export interface LaneRecord {
  epoch: number;
  created: InstantUs;
  /** When keys were lost, 0 for never. */
  lostAt: InstantUs;
  /** Corrected time less the server's own, us. */
  offset: number;
  /** Last corrected time. */
  last: InstantUs;
  /** Members that the last heartbeat left; used in lane 0. */
  members: number;
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
  const { epoch, heardAtUs, heardAgoUs, toleranceUs } = reference;
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
  return lane;
}

function newLane(rawUs: InstantUs, lost: boolean): LaneRecord {
  const lostAt = lost ? rawUs : 0;
  return { epoch: rawUs + 1, created: rawUs, lostAt, offset: 0, last: rawUs, members: 0 };
}

/** The stored value of a record. */
export function packLane(lane: LaneRecord): Float64Array {
  const { epoch, created, lostAt, offset, last, members } = lane;
  return new Float64Array([epoch, created, lostAt, offset, last, members]);
}

/** The record of a stored value, or undefined when it cannot be one. */
export function unpackLane(numbers: Float64Array): LaneRecord | undefined {
  if (numbers.length !== 6 || !numbers.every(isStorable)) return undefined;
  const [epoch = 0, created = 0, lostAt = 0, offset = 0, last = 0, members = 0] = numbers;
  if (!(epoch > 0 && created > 0 && lostAt >= 0 && last >= 0 && members >= 0)) return undefined;
  return { epoch, created, lostAt, offset, last, members };
}
