/**
 * What each fault explains beyond the bound: tokens of over-admission that are no breach of I1,
 * once per fault. Upper limits for safety; what is promised is tighter and stands in the verdicts.
 */
import type { Limit } from "../src/core/limit.ts";
import type { Tokens } from "../src/core/units.ts";
import { type BoundTerms, boundOf, epsBound } from "./bound.ts";
import type { Fault } from "./fault-plan.ts";
import type { Membership } from "./scheme.ts";

/** Seconds until a cut pod has entered its fallback, with slack for timers. */
const FALLBACK_ENTRY_S = 1.2;
/** Seconds until connected pods hold refill back for pods that were cut off. */
const DETECTION_S = 4;
/** A forward step of the store's clock up to this is taken for time that has passed. */
const CLOCK_TOLERANCE_S = 0.1;

/** Faults that may keep a pod from the store: an `open` limit denies nothing meanwhile. */
const ISOLATING: ReadonlySet<Fault["kind"]> = new Set([
  "partition",
  "hold",
  "link",
  "store-slow",
  "store-down",
  "store-flap",
]);

export interface AllowanceTerms extends BoundTerms {
  readonly membership: Membership;
}

/** Tokens; a crash is priced by the world, which knows what the pod had not reported. */
export function allowanceOf(fault: Fault, limit: Limit, terms: AllowanceTerms): Tokens {
  const { rate, burst, intervalUs } = limit;
  const coldEach = Math.min(0.1 * burst, 2 * rate) / terms.pods;
  if (limit.fallback.policy === "open" && ISOLATING.has(fault.kind))
    return Number.POSITIVE_INFINITY;
  if (isDecidedBeforehand(limit, fault)) return strictAllowanceOf(fault, limit);
  const eps = Math.max(epsBound(limit, terms), boundOf(limit, terms));
  switch (fault.kind) {
    case "join":
      return fault.count * (Math.floor(coldEach) + 1);
    case "stall":
    case "pause":
    case "bounce": {
      // A pod that stood still wakes with its flow and the stock of an unknown key.
      const flow = Math.max(fault.pods.length, (rate * intervalUs) / 1e6);
      return flow + fault.pods.length * coldEach;
    }
    case "partition":
    case "hold": {
      const cut = Math.min(1, fault.pods.length / terms.pods);
      const seconds = fault.forUs / 1e6;
      const exposed = terms.membership === "listed" ? Math.min(seconds, DETECTION_S) : seconds;
      return rate * Math.min(seconds, FALLBACK_ENTRY_S) + cut * (burst + rate * exposed) + eps;
    }
    case "link": {
      const retries =
        (intervalUs * 2 * fault.loss + terms.commandTimeoutUs) / (1 - fault.loss) ** 2;
      return (rate * (retries + 2 * fault.delayUs + fault.lateUs)) / 1e6;
    }
    case "store-slow":
      return eps + (rate * 2 * Math.min(fault.byUs, 1e6 * FALLBACK_ENTRY_S)) / 1e6;
    case "store-down":
    case "store-flap":
    case "config":
      return eps;
    case "store-failover":
      return eps + (rate * fault.lagUs) / 1e6;
    case "store-empty":
      return eps + 0.1 * burst;
    case "store-clock":
      return Math.max(0, Math.min(CLOCK_TOLERANCE_S, fault.byUs / 1e6)) * rate;
    case "leave":
    case "crash":
    case "drift":
    case "pod-clock":
      return 0;
  }
}

/** The limit is leased or exact, and the fault does not send pods to a local fallback. */
function isDecidedBeforehand({ mode, fallback }: Limit, { kind }: Fault): boolean {
  if (mode !== "leased" && mode !== "exact") return false;
  return fallback.policy === "closed" || !ISOLATING.has(kind);
}

/** What is decided in the store, or handed out by it, is exceeded only where its time is wrong. */
function strictAllowanceOf(fault: Fault, { mode, rate, burst }: Limit): Tokens {
  switch (fault.kind) {
    case "store-clock":
      return Math.max(0, Math.min(CLOCK_TOLERANCE_S, fault.byUs / 1e6)) * rate;
    case "pause":
      // A clock that stands still does not see a lease end, nor how late an answer is.
      return mode === "leased" ? burst : Math.min(burst, fault.pods.length * rate * 0.01);
    case "config":
      // Leases that are out stay valid while the burst shrinks below them.
      return burst;
    default:
      return 0;
  }
}
