/**
 * An attacker who knows the scheme: drains the bucket through one pod, then asks every other pod at
 * one instant, before word gets round; then rests until all is forgotten, and again.
 */
import type { DurationUs, Tokens } from "../../src/core/units.ts";
import type { Arrival, Workload } from "../workload.ts";
import { checksOf } from "./offered.ts";

interface DrainThenHitAll {
  /** Tokens asked of pod 0, spread over `drainUs`; more than the bucket holds. */
  readonly drain: Tokens;
  readonly drainUs: DurationUs;
  /** Tokens asked of each other pod at one instant. */
  readonly blow: Tokens;
  /** From the drain's end to the blow. */
  readonly pauseUs?: DurationUs;
  /** From one attack to the next. */
  readonly everyUs: DurationUs;
  readonly limit?: number;
  readonly key?: string;
}

export function drainThenHitAll(given: DrainThenHitAll): Workload {
  const { drain, drainUs, blow, pauseUs = 0, everyUs } = given;
  return {
    summary: `${drain} at pod 0 in ${drainUs / 1e6} s, then ${blow} at each other pod at once`,
    start({ pods }) {
      const checks = checksOf(given);
      const others = pods - 1;
      const perAttack = drain + blow * others;
      let sent = 0;
      return {
        next(): Arrival {
          const attack = Math.floor(sent / perAttack);
          const place = sent % perAttack;
          sent += 1;
          const startUs = attack * everyUs;
          if (place < drain) {
            const atUs = startUs + Math.floor((place * drainUs) / drain);
            return { atUs, pod: 0, client: 1, checks };
          }
          const pod = 1 + ((place - drain) % others);
          return { atUs: startUs + drainUs + pauseUs, pod, client: 1, checks };
        },
      };
    },
  };
}
