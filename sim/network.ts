/** Links between pods and the store host. */
import type { DurationUs } from "../src/core/units.ts";

/** How a link treats messages, one way; both ways are alike. */
export interface LinkQuality {
  /** Every message takes at least this. */
  readonly baseUs: DurationUs;
  /** And an exponentially distributed time with this mean on top. */
  readonly jitterUs: DurationUs;
  readonly loss: number;
  readonly duplicate: number;
  readonly reorder: number;
  readonly reorderUs: DurationUs;
}

/** 1 ms + Exp(1 ms) one way, nothing lost: the link of the published measurements. */
export const LAN: LinkQuality = {
  baseUs: 1_000,
  jitterUs: 1_000,
  loss: 0,
  duplicate: 0,
  reorder: 0,
  reorderUs: 0,
};
