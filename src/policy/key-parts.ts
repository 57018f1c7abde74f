/**
 * The parts of a key, taken from a request.
 *
 * A part that is given several times with different values is `repeated`, one value for all who do
 * so. Were one of the values chosen here, the application might choose another, and a client could
 * add a fresh one to each request and get a bucket of its own each time.
 */
import type { KeySource, OriginalRequest, Policy } from "../ports/policy.ts";
import { clientAddress } from "./client-address.ts";
import { ABSENT, type Part, partOf, REPEATED } from "./key.ts";
import type { Params } from "./path-pattern.ts";
import { decodeEscapes } from "./path-readings.ts";

/** What of a request depends on the policy and on the reading of its path. */
export interface PartContext {
  readonly request: OriginalRequest;
  /** Query of the original target, a byte string. */
  readonly query: string;
  readonly params: Params;
  readonly policy: Policy;
}

export function takePart(source: KeySource, context: PartContext): Part {
  switch (source.kind) {
    case "header":
      return one(context.request.header(source.name));
    case "path":
      return one(listed(context.params.get(source.name)));
    case "query":
      return one(queryValues(context.query, source.name));
    case "cookie":
      return one(cookieValues(context.request.header("cookie"), source.name));
    case "client-address":
      return clientAddress(context.request, context.policy);
    case "const":
      return { kind: "text", text: source.value };
  }
}

function one(values: readonly string[]): Part {
  const [first] = values;
  if (first === undefined) return ABSENT;
  return values.every((value) => value === first) ? partOf(first) : REPEATED;
}

function listed(value: string | undefined): readonly string[] {
  return value === undefined ? [] : [value];
}

/** As in HTML forms `+` is a space, and a name without `=` has an empty value. */
function queryValues(query: string, name: string): readonly string[] {
  if (query === "") return [];
  const wanted = Buffer.from(name).toString("latin1");
  return query.split("&").flatMap((field) => {
    if (field === "") return [];
    const equals = field.indexOf("=");
    const end = equals < 0 ? field.length : equals;
    return formText(field.slice(0, end)) === wanted ? [formText(field.slice(end + 1))] : [];
  });
}

function formText(text: string): string {
  return decodeEscapes(text.replaceAll("+", " "));
}

/**
 * Quotes around a value are taken off and escapes decoded, as common libraries do: the same session
 * in two spellings is one session.
 */
function cookieValues(lines: readonly string[], name: string): readonly string[] {
  return lines
    .flatMap((line) => line.split(";"))
    .flatMap((pair) => {
      const equals = pair.indexOf("=");
      if (equals < 0 || pair.slice(0, equals).trim() !== name) return [];
      return [
        decodeEscapes(
          pair
            .slice(equals + 1)
            .trim()
            .replace(/^"(.*)"$/, "$1"),
        ),
      ];
    });
}
