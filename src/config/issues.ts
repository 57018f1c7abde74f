/** Tells the schema's issues as problems: what is missing, what is unknown, what is wrong. */
import type { z } from "zod";
import { didYouMean } from "./closest.ts";
import type { Findings } from "./findings.ts";
import { fieldNamesAt } from "./json-schema.ts";
import { isMap, type Path } from "./tree.ts";

/** Names that people try, and what they should write. */
const ADVICE: ReadonlyMap<string, string> = new Map([
  [
    "redis.password",
    "secrets are not kept in this file; use password_file or the variable ALIQUOT_REDIS_PASSWORD",
  ],
]);

/** A longer list of names hides the problem that it should help with. */
const KNOWN_SHOWN_MAX = 10;

export function reportIssues(
  issues: readonly z.core.$ZodIssue[],
  base: Path,
  findings: Findings,
): void {
  for (const issue of issues) {
    const path: Path = [...base, ...issue.path.map((step) => asStep(step))];
    if (issue.code === "unrecognized_keys") {
      for (const name of issue.keys) reportUnknown(path, name, findings);
      continue;
    }
    const value = findings.valueAt(path);
    if (issue.code === "invalid_union") {
      // A map was meant for the alternative that takes maps: its own issues say more.
      const ofMap = issue.errors.find((errors) => !errors.some((inner) => inner.path.length === 0));
      if (isMap(value) && ofMap !== undefined) {
        reportIssues(ofMap, path, findings);
        continue;
      }
    }
    if (value === undefined) findings.add(path, `is missing; ${issue.message}`);
    else if (value === null) findings.add(path, `has no value; ${issue.message}`);
    else findings.add(path, issue.message);
  }
}

function reportUnknown(path: Path, name: string, findings: Findings): void {
  const known = fieldNamesAt(path);
  const advice = ADVICE.get([...path, name].join("."));
  const guess = didYouMean(name, known);
  const all =
    known.length > KNOWN_SHOWN_MAX
      ? "aliquot schema lists the known ones"
      : `known here: ${known.join(", ")}`;
  const accepted = guess === "" ? `; ${all}` : guess;
  findings.addName(
    [...path, name],
    `unknown field${advice === undefined ? accepted : `; ${advice}`}`,
  );
}

function asStep(step: PropertyKey): string | number {
  return typeof step === "number" ? step : String(step);
}
