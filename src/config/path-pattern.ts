/** Patterns of paths as they are written in a file: `/users/:id`, `/api/*`, `/files/**`. */
import type { PathPattern, PatternSegment } from "../ports/policy.ts";

const PATTERN_LENGTH_MAX = 1_024;
const PARAM = /^:[A-Za-z_][A-Za-z0-9_-]{0,62}$/;

/** @returns The pattern, or what is wrong with it. */
export function parsePathPattern(text: string): PathPattern | string {
  if (!text.startsWith("/")) return "must begin with /";
  if (text.length > PATTERN_LENGTH_MAX) return `must be at most ${PATTERN_LENGTH_MAX} long`;
  if (/[%?#\\]/.test(text)) {
    return "is compared with the decoded path, without the query; it holds no %, ?, # or \\";
  }
  const inside = text.replace(/^\/|\/$/g, "");
  const segments = inside === "" ? [] : inside.split("/").map(parseSegment);
  const wrong = segments.find((segment) => typeof segment === "string");
  if (typeof wrong === "string") return wrong;
  const pattern = segments.filter((segment) => typeof segment !== "string");
  if (pattern.filter(({ kind }) => kind === "rest").length > 1) return "may hold ** once";
  const names = paramNames(pattern);
  const twice = names.find((name, index) => names.indexOf(name) < index);
  return twice === undefined ? pattern : `names the segment :${twice} twice`;
}

export function paramNames(pattern: PathPattern): string[] {
  return pattern.flatMap((segment) => (segment.kind === "param" ? [segment.name] : []));
}

export function formatPathPattern(pattern: PathPattern): string {
  return `/${pattern.map(formatSegment).join("/")}`;
}

function parseSegment(text: string): PatternSegment | string {
  if (text === "*") return { kind: "one" };
  if (text === "**") return { kind: "rest" };
  if (PARAM.test(text)) return { kind: "param", name: text.slice(1) };
  if (text.startsWith(":")) return "has a segment : without a name of letters, digits, _ and -";
  if (text.includes("*")) return "has * beside other characters; * and ** are whole segments";
  if (text === "") return "has an empty segment";
  if (text === "." || text === "..") return "has a dot segment, which no path has once it is read";
  return { kind: "text", bytes: Buffer.from(text).toString("latin1") };
}

function formatSegment(segment: PatternSegment): string {
  switch (segment.kind) {
    case "one":
      return "*";
    case "rest":
      return "**";
    case "param":
      return `:${segment.name}`;
    case "text":
      return Buffer.from(segment.bytes, "latin1").toString();
  }
}
