/**
 * What the schema knows and the program does not do yet. Such a setting is refused, because a
 * limit that is kept in another way than its author asked for is worse than none. A row goes when
 * the thing it names arrives.
 */
import type { Findings } from "./findings.ts";
import type { Path } from "./tree.ts";

interface NotYet {
  /** `*` stands for every item of a list. */
  readonly path: readonly string[];
  /** The values refused; left out: any value. */
  readonly values?: readonly string[];
  /** What to do instead. */
  readonly advice: string;
}

const NOT_YET: readonly NotYet[] = [
  {
    path: ["membership", "source"],
    values: ["kubernetes", "dns"],
    advice: "use redis or static",
  },
];

export function reportNotYet(findings: Findings): void {
  for (const row of NOT_YET) {
    for (const path of expand(row.path, findings)) {
      const value = findings.valueAt(path);
      if (value === undefined) continue;
      const refused = row.values === undefined || row.values.some((name) => name === value);
      if (refused) findings.add(path, `is not yet available; ${row.advice}`);
    }
  }
}

function expand(pattern: readonly string[], findings: Findings): Path[] {
  let paths: Path[] = [[]];
  for (const step of pattern) {
    paths = paths.flatMap((path): Path[] => {
      if (step !== "*") return [[...path, step]];
      const items = findings.valueAt(path);
      return Array.isArray(items) ? items.map((_, index): Path => [...path, index]) : [];
    });
  }
  return paths;
}
