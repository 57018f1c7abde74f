/** What a run did that may cost tokens: writes that a store forgets, and pods that die untold. */
import { type DurationUs, type InstantUs, US_PER_SECOND } from "../src/core/units.ts";
import type { RunOptions } from "./options.ts";
import type { Act } from "./schedule.ts";

/** How far a replica may lag behind, and how long pods may follow a primary that is none. */
const LAG_US: DurationUs = US_PER_SECOND;

export type Danger =
  /** The store forgot all it knew, or a strict limit takes it that way: its keys begin empty. */
  | { readonly kind: "loss"; readonly cause: string }
  /** What was written in this interval may be forgotten. */
  | { readonly kind: "failover"; readonly fromUs: InstantUs; readonly toUs: InstantUs }
  /** Pods that died without telling what they had admitted. */
  | { readonly kind: "kill"; readonly pods: readonly number[] };

/** Commands that change nothing. */
const HARMLESS = /^(PING|INFO|GET|TTL|PTTL|DBSIZE|TIME|MEMORY|SLOWLOG|CLIENT)$/i;

/** The danger of an act on the store that took from `fromUs` to `toUs`; undefined for none. */
export function dangerOf(
  act: Act,
  { redis, mode }: Pick<RunOptions, "redis" | "mode">,
  fromUs: InstantUs,
  toUs: InstantUs,
): Danger | undefined {
  const isStrict = mode === "leased" || mode === "exact";
  const isMove = act.kind === "redis-stop" || act.kind === "redis-hang";
  if (isStrict && redis !== "single" && (isMove || act.kind === "redis-failover")) {
    return { kind: "loss", cause: act.kind };
  }
  switch (act.kind) {
    case "redis-stop":
      if (redis === "single") return { kind: "loss", cause: act.kind };
      return { kind: "failover", fromUs: fromUs - LAG_US, toUs };
    case "redis-hang":
      if (redis === "single") return undefined;
      return { kind: "failover", fromUs: fromUs - LAG_US, toUs };
    case "redis-failover":
      return { kind: "failover", fromUs: fromUs - LAG_US, toUs: toUs + LAG_US };
    case "redis":
      if (HARMLESS.test(act.command[0] ?? "")) return undefined;
      return { kind: "loss", cause: act.command.join(" ") };
    default:
      return undefined;
  }
}
