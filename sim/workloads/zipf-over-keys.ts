/**
 * Many keys by Zipf's law, each request at a random pod: most pairs of pod and key see next to
 * nothing, which is where batching over time cannot help.
 */
import type { SimCheck } from "../scheme.ts";
import { traffic, zipf } from "../traffic.ts";
import type { Workload } from "../workload.ts";
import { checksOf, type Offered, streamOf } from "./offered.ts";

interface ZipfOverKeys extends Offered {
  readonly keys: number;
  readonly exponent?: number;
}

/** Keys are `key-0`, the most frequent one, and up. */
export function zipfOverKeys(offered: ZipfOverKeys): Workload {
  const { keys, perSecond, exponent = 1 } = offered;
  const draw = zipf(keys, exponent);
  const known: Map<number, readonly SimCheck[]> = new Map();
  const checksFor = (rank: number): readonly SimCheck[] => {
    const checks = known.get(rank) ?? checksOf({ ...offered, key: `key-${rank}` });
    known.set(rank, checks);
    return checks;
  };
  return traffic(`${perSecond}/s over ${keys} keys, Zipf ${exponent}`, [
    { ...streamOf(offered), checks: (random) => checksFor(draw(random)) },
  ]);
}
