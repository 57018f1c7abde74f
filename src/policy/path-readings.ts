/**
 * All the ways in which the server behind the proxy may read a path.
 *
 * `/a/../b`, `//b`, `/a%2Fb`, `/a\b` and `/a;x=1` name different resources for different servers,
 * and nobody here knows which server it is. If one reading were chosen, a client could write a path
 * that is one thing to the policies and another to the application, and so slip from a strict
 * policy into a lax one. So such a path has several readings, and is charged under the policy that
 * each of them selects. Refusing them instead would break applications that rely on `%2F`.
 *
 * In every reading escapes are decoded once and one slash at the end does not count.
 */

/** Segments of a path, decoded, as byte strings. */
export type Segments = readonly string[];

/** A path without escapes, path parameters, backslashes, empty and dot segments has one reading. */
const AMBIGUOUS = /[%;\\]|\/\/|\/\./;

/** @returns One to four readings, all different. */
export function readingsOf(path: string): readonly Segments[] {
  if (!AMBIGUOUS.test(path)) return [split(path)];
  const asSent = split(path).map(decodeEscapes);
  const withSlashes = decodeEscapes(path).replaceAll("\\", "/");
  const withoutParameters = decodeEscapes(path.replace(/;[^/]*/g, "")).replaceAll("\\", "/");
  return distinct([
    asSent,
    resolveDots(asSent),
    resolveDots(split(withSlashes)),
    resolveDots(split(withoutParameters)),
  ]);
}

/** Decodes `%XX` once; what is no escape stays as it is. */
export function decodeEscapes(text: string): string {
  if (!text.includes("%")) return text;
  return text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

function split(path: string): string[] {
  const segments = path.split("/");
  if (segments[0] === "") segments.shift();
  if (segments.at(-1) === "") segments.pop();
  return segments;
}

/** Without empty and dot segments (RFC 3986, 5.2.4); nothing climbs above the root. */
function resolveDots(segments: Segments): Segments {
  const resolved: string[] = [];
  for (const segment of segments) {
    if (segment === "..") resolved.pop();
    else if (segment !== "" && segment !== ".") resolved.push(segment);
  }
  return resolved;
}

function distinct(readings: readonly Segments[]): readonly Segments[] {
  const byText = new Map(readings.map((segments) => [JSON.stringify(segments), segments]));
  return [...byText.values()];
}
