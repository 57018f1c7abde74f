/**
 * Matching a path with a pattern: texts for themselves, `*` for one segment, `:name` for one that
 * may be used in a key, and `**`, at most once, for any number of segments. With one `**` the rest
 * of the pattern has a fixed place, so there is nothing to try and take back.
 */
import type { PathPattern, PatternSegment } from "../ports/policy.ts";
import type { Segments } from "./path-readings.ts";

/** Values of a pattern's `:name` segments, byte strings. */
export type Params = ReadonlyMap<string, string>;

const NO_PARAMS: Params = new Map();

/** @returns The values of the named segments, or undefined when the path does not match. */
export function matchPath(pattern: PathPattern, segments: Segments): Params | undefined {
  const rest = pattern.findIndex(({ kind }) => kind === "rest");
  if (rest < 0) {
    return pattern.length === segments.length ? matchSegments(pattern, segments) : undefined;
  }
  const tail = pattern.length - rest - 1;
  if (segments.length < rest + tail) return undefined;
  const end = segments.length - tail;
  return matchSegments(
    [...pattern.slice(0, rest), ...pattern.slice(rest + 1)],
    [...segments.slice(0, rest), ...segments.slice(end)],
  );
}

function matchSegments(pattern: readonly PatternSegment[], segments: Segments): Params | undefined {
  let params: Map<string, string> | undefined;
  for (const [index, wanted] of pattern.entries()) {
    const segment = segments[index] ?? "";
    if (wanted.kind === "text") {
      if (segment !== wanted.bytes) return undefined;
      continue;
    }
    if (segment === "") return undefined;
    if (wanted.kind === "param") {
      params ??= new Map();
      params.set(wanted.name, segment);
    }
  }
  return params ?? NO_PARAMS;
}
