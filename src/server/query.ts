/**
 * Query strings, read strictly.
 *
 * `URLSearchParams` replaces what it cannot decode, which would make different keys equal; here a
 * bad escape is a problem. As in HTML forms `+` is a space, and the last of several values counts.
 */
import { badRequest, type Problem } from "./problem.ts";

/** @param text - What follows the question mark. */
export function parseQuery(text: string): ReadonlyMap<string, string> | Problem {
  const fields = new Map<string, string>();
  // Node hands over raw bytes as Latin-1, so that what looks like a character may be half of one.
  if (/[^\x21-\x7e]/.test(text)) {
    return badRequest("the query holds bytes that are not ASCII; escape them as %XX");
  }
  for (const part of text.split("&")) {
    if (part === "") continue;
    const equals = part.indexOf("=");
    try {
      if (equals < 0) fields.set(decode(part), "");
      else fields.set(decode(part.slice(0, equals)), decode(part.slice(equals + 1)));
    } catch {
      return badRequest("the query is not percent-encoded UTF-8");
    }
  }
  return fields;
}

/** @throws {URIError} When an escape is broken or does not spell UTF-8. */
function decode(text: string): string {
  return decodeURIComponent(text.replaceAll("+", " "));
}

/** A path segment decoded, or undefined when it is no percent-encoded UTF-8. */
export function decodeSegment(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
