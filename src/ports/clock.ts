import type { InstantUs } from "../core/units.ts";

/** Time as the adapters see it. The core gets instants as arguments and never asks. */
export interface Clock {
  /** Monotonic time, us since an arbitrary start; never goes back, unrelated to the wall clock. */
  monotonicUs(): InstantUs;
}
