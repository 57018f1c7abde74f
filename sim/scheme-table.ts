/** All schemes that can be named on the command line. */
import { aliquotScheme } from "./aliquot-scheme.ts";
import { ABLATED, BASELINES } from "./baselines/baseline-table.ts";
import { startRedisBackend } from "./redis-backend.ts";
import type { Scheme } from "./scheme.ts";

/** The product on a real redis-server, which is started for each run. */
export const ON_REDIS: Scheme = aliquotScheme({
  name: "aliquot-on-redis",
  rule: "hybrid mode, the real scripts on a real redis-server",
  backend: startRedisBackend,
}) as Scheme;

export const SCHEMES: readonly Scheme[] = [
  aliquotScheme() as Scheme,
  ON_REDIS,
  ...BASELINES,
  ...ABLATED,
];

/** @throws {RangeError} When there is none of that name; the message names them all. */
export function schemeNamed(name: string): Scheme {
  const found = SCHEMES.find((scheme) => scheme.name === name);
  if (found !== undefined) return found;
  const names = SCHEMES.map((scheme) => scheme.name);
  throw new RangeError(`there is no scheme "${name}"; there are ${names.join(", ")}`);
}
