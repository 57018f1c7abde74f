/** What most open-loop workloads have in common: how much is asked, of which limit, how spaced. */
import type { Tokens, TokensPerSecond } from "../../src/core/units.ts";
import type { SimCheck } from "../scheme.ts";
import type { Stream } from "../traffic.ts";

export interface Offered {
  /** Tokens asked for per second. */
  readonly perSecond: TokensPerSecond;
  /** Place of the limit in the scenario; 0 unless said. */
  readonly limit?: number;
  readonly key?: string;
  /** Of each request. */
  readonly cost?: Tokens;
  readonly spacing?: "poisson" | "even";
}

/** The one check that every request of a workload makes. */
export function checksOf({
  limit = 0,
  key = "k",
  cost = 1,
}: Partial<Offered>): readonly SimCheck[] {
  return [{ limit, key, cost }];
}

/** The stream that `offered` describes, at random pods unless the caller adds one. */
export function streamOf(offered: Offered): Stream & { readonly perSecond: number } {
  const checks = checksOf(offered);
  return {
    perSecond: offered.perSecond / (offered.cost ?? 1),
    spacing: offered.spacing ?? "poisson",
    checks: () => checks,
  };
}
