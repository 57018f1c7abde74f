/**
 * Plans of faults: data that can be printed one line each, read back, and made smaller.
 *
 * A line is `<at>s <kind> <name>=<value> ...`, e.g. `10.000s partition pods=0-5 for=5.000s`.
 * Times are seconds with up to six digits, pods are numbers and ranges joined by commas.
 */
import type { DurationUs, InstantUs } from "../src/core/units.ts";

interface At {
  readonly atUs: InstantUs;
}
interface Lasting extends At {
  readonly forUs: DurationUs;
}
/** Pods by number; those that do not serve at that instant are passed over. */
interface OfPods {
  readonly pods: readonly number[];
}

/** Which way a cut or a held link is closed. */
export type Way = "both" | "to-store" | "from-store";

export type Fault =
  /** New pods, numbered on from the highest so far. */
  | (At & { readonly kind: "join"; readonly count: number })
  /** Graceful stop. */
  | (At & OfPods & { readonly kind: "leave" })
  | (At & OfPods & { readonly kind: "crash" })
  /** Crash, and a new life of the same pod number after `forUs`. */
  | (Lasting & OfPods & { readonly kind: "bounce" })
  /** The event loop stands still; messages and requests queue up. */
  | (Lasting & OfPods & { readonly kind: "stall" })
  /** The machine stands still: as a stall, and its clock stands still as well. */
  | (Lasting & OfPods & { readonly kind: "pause" })
  /** From here on the pod's clock runs at `rate` times true time. */
  | (At & OfPods & { readonly kind: "drift"; readonly rate: number })
  /** The pod's wall clock steps; nothing may depend on it. */
  | (At & OfPods & { readonly kind: "pod-clock"; readonly byUs: number })
  /** Messages are lost. */
  | (Lasting & OfPods & { readonly kind: "partition"; readonly way: Way })
  /** Messages wait until the end and arrive then. */
  | (Lasting & OfPods & { readonly kind: "hold"; readonly way: Way })
  /** A worse link, both ways. */
  | (Lasting &
      OfPods & {
        readonly kind: "link";
        readonly loss: number;
        readonly duplicate: number;
        /** Part of the messages that take `reorderUs` longer. */
        readonly reorder: number;
        readonly reorderUs: DurationUs;
        readonly delayUs: DurationUs;
      })
  /** Refuses connections, or takes requests and never answers. */
  | (Lasting & { readonly kind: "store-down"; readonly how: "refuse" | "hang" })
  /** Down for `downUs` of every `everyUs`. */
  | (Lasting & {
      readonly kind: "store-flap";
      readonly everyUs: DurationUs;
      readonly downUs: DurationUs;
    })
  /** Every call takes longer. */
  | (Lasting & { readonly kind: "store-slow"; readonly byUs: DurationUs })
  /** The state of `lagUs` ago comes back; what was acknowledged since is gone. */
  | (At & { readonly kind: "store-failover"; readonly lagUs: DurationUs })
  /** All state is gone. */
  | (At & { readonly kind: "store-empty" })
  | (At & { readonly kind: "store-clock"; readonly byUs: number })
  /** `Scenario.configs[set]` comes into force, pod after pod over `overUs`. */
  | (At & { readonly kind: "config"; readonly set: number; readonly overUs: DurationUs });

export type FaultKind = Fault["kind"];
