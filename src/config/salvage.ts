/** Reads a section in spite of unknown fields, so that the rest of it is checked too. */
import type { z } from "zod";
import { type Path, withValue } from "./tree.ts";

/**
 * @returns The section, without its unknown fields, or undefined when anything else is wrong: a
 *   default in place of a wrong value would lead to problems that are none.
 */
export function salvage<T>(schema: z.ZodType<T>, value: unknown): T | undefined {
  const first = schema.safeParse(value);
  if (first.success) return first.data;
  let known = value;
  for (const issue of first.error.issues) {
    if (issue.code !== "unrecognized_keys") return undefined;
    for (const name of issue.keys)
      known = withValue(known, [...(issue.path as Path), name], undefined);
  }
  const second = schema.safeParse(known);
  return second.success ? second.data : undefined;
}
