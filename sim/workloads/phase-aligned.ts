/**
 * Every pod gets its part at the same instants (cron jobs, polling clients on the full second): the
 * worst case for anything that spends before it reports.
 */
import type { DurationUs } from "../../src/core/units.ts";
import type { Workload } from "../workload.ts";
import { checksOf, type Offered } from "./offered.ts";

export function phaseAligned(offered: Offered & { readonly everyUs: DurationUs }): Workload {
  const { perSecond, everyUs, cost = 1 } = offered;
  const perTick = (perSecond * everyUs) / 1e6 / cost;
  return {
    summary: `${perSecond}/s, at all pods at once every ${everyUs / 1e6} s`,
    start({ pods }) {
      const checks = checksOf(offered);
      let [tick, sent] = [0, 0];
      return {
        next() {
          if (!(perTick > 0)) return undefined;
          // Requests are counted from the start, so that fractions of a tick carry over.
          while (sent >= Math.floor(perTick * (tick + 1))) tick += 1;
          sent += 1;
          return { atUs: tick * everyUs, pod: sent % pods, client: 0, checks };
        },
      };
    },
  };
}
