/** All schemes that ours is compared with, in the order of reports. */
import type { Scheme } from "../scheme.ts";
import { ABLATIONS } from "./ablations.ts";
import { DROP_RATIO } from "./drop-ratio.ts";
import { FIXED_WINDOW } from "./fixed-window.ts";
import { GCRA } from "./gcra.ts";
import { INDEPENDENT } from "./independent.ts";
import { LEAKY_BUCKET } from "./leaky-bucket.ts";
import { REMAINING_COPY } from "./remaining-copy.ts";
import { SLIDING_COUNTER } from "./sliding-counter.ts";
import { SLIDING_LOG } from "./sliding-log.ts";
import { STATIC_SHARES } from "./static-share.ts";
import { TOKEN_BUCKET } from "./token-bucket.ts";

/** A scheme only ever meets its own store; the world need not know which. */
function plain(scheme: unknown): Scheme {
  return scheme as Scheme;
}

/** Rules of other systems. */
export const BASELINES: readonly Scheme[] = [
  INDEPENDENT,
  ...STATIC_SHARES,
  ...[TOKEN_BUCKET, GCRA, LEAKY_BUCKET, FIXED_WINDOW, SLIDING_LOG, SLIDING_COUNTER].map(plain),
  ...[REMAINING_COPY, DROP_RATIO].map(plain),
];

/** Our own rule with parts taken out. */
export const ABLATED: readonly Scheme[] = ABLATIONS.map(plain);
