/** Plain values as a tree of maps and lists, and paths through it. */

/** Names and indexes from the root of the file to a value. */
export type Path = readonly (string | number)[];

/** `limits[0].rate`; names that are not plain words are quoted. */
export function formatPath(path: Path): string {
  let text = "";
  for (const part of path) {
    if (typeof part === "number") text += `[${part}]`;
    else if (!/^[A-Za-z0-9_-]+$/.test(part)) text += `[${JSON.stringify(part)}]`;
    else text += text === "" ? part : `.${part}`;
  }
  return text;
}

/** The value at a path, undefined where the path leads nowhere. */
export function valueAt(root: unknown, path: Path): unknown {
  let value = root;
  for (const part of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, part)) {
      return undefined;
    }
    value = (value as Record<string | number, unknown>)[part];
  }
  return value;
}

/** A JSON object, as opposed to a list, a scalar or nothing. */
export function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A copy with one value replaced, or removed by undefined. A non-map in the way is left alone. */
export function withValue(root: unknown, path: Path, value: unknown): unknown {
  const [step, ...rest] = path;
  if (step === undefined) return value;
  if (root !== undefined && !isMap(root)) return root;
  if (root === undefined && value === undefined) return undefined;
  const copy: Record<string, unknown> = { ...root };
  const inner = withValue(copy[step], rest, value);
  if (inner === undefined) delete copy[step];
  else copy[step] = inner;
  return copy;
}
