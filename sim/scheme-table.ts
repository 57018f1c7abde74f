/** All schemes that can be named on the command line. */
import { aliquotScheme } from "./aliquot-scheme.ts";
import { ABLATED, BASELINES } from "./baselines/baseline-table.ts";
import type { Scheme } from "./scheme.ts";

export const SCHEMES: readonly Scheme[] = [aliquotScheme() as Scheme, ...BASELINES, ...ABLATED];

/** @throws {RangeError} When there is none of that name; the message names them all. */
export function schemeNamed(name: string): Scheme {
  const found = SCHEMES.find((scheme) => scheme.name === name);
  if (found !== undefined) return found;
  const names = SCHEMES.map((scheme) => scheme.name);
  throw new RangeError(`there is no scheme "${name}"; there are ${names.join(", ")}`);
}
