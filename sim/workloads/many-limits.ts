/** Several limits per check, all or nothing: per tenant, per route, for everybody. */
import type { SimCheck } from "../scheme.ts";
import { traffic } from "../traffic.ts";
import type { Workload } from "../workload.ts";

interface ManyLimits {
  readonly requestsPerSecond: number;
  /** Kinds of requests, equally frequent: the places of the limits that each is checked against. */
  readonly kinds: readonly (readonly number[])[];
}

export function manyLimits({ requestsPerSecond, kinds }: ManyLimits): Workload {
  const asked: readonly (readonly SimCheck[])[] = kinds.map((limits) =>
    limits.map((limit) => ({ limit, key: "k", cost: 1 })),
  );
  const sets = kinds.map((limits) => limits.join("+")).join(", ");
  return traffic(`${requestsPerSecond}/s against limits ${sets}`, [
    {
      perSecond: requestsPerSecond,
      checks: (random) => asked[random.below(asked.length)] as readonly SimCheck[],
    },
  ]);
}
