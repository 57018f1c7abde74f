/**
 * Refusals of the HTTP side as values: RFC 9457 problem details.
 *
 * A problem is made where the fault is seen and turned into an answer in one place, so that no
 * error object, and with it no stack trace, can reach a caller.
 */

/** Problem types that draft-ietf-httpapi-ratelimit-headers registers. */
const REDUCED_CAPACITY =
  "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";
const LIMIT_EXCEEDED = "https://iana.org/assignments/http-problem-types#quota-exceeded";

const TITLES: Readonly<Record<number, string>> = {
  400: "Bad Request",
  404: "Not Found",
  405: "Method Not Allowed",
  408: "Request Timeout",
  413: "Content Too Large",
  431: "Request Header Fields Too Large",
  500: "Internal Server Error",
};

/** Longest excerpt of a caller's text that is repeated in an answer, in UTF-16 code units. */
const EXCERPT_MAX = 64;

export interface ProblemFields {
  readonly type?: string;
  readonly title?: string;
  /** Names of limits that stand in the way, for the type that defines the member. */
  readonly violatedPolicies?: readonly string[];
  /** For 405: the methods that the resource has. */
  readonly allow?: string;
}

export class Problem {
  readonly status: number;
  /** A sentence for the caller's developer: what is wrong and what would be accepted. */
  readonly detail: string;
  readonly fields: ProblemFields;

  constructor(status: number, detail: string, fields: ProblemFields = {}) {
    this.status = status;
    this.detail = detail;
    this.fields = fields;
  }

  /** The problem as JSON text in ASCII. */
  json(): string {
    const { type = "about:blank", title = TITLES[this.status] ?? "Error" } = this.fields;
    return asciiJson({
      type,
      title,
      status: this.status,
      detail: this.detail,
      "violated-policies": this.fields.violatedPolicies,
    });
  }
}

export function badRequest(detail: string): Problem {
  return new Problem(400, detail);
}

export function methodNotAllowed(method: string, path: string, allow: string): Problem {
  return new Problem(405, `${path} does not answer ${excerpt(method)}; it answers ${allow}`, {
    allow,
  });
}

/**
 * The answer to a client that spent its tokens, for proxies to hand on.
 *
 * @param limitNames - The limits that deny.
 * @param retryAfterSeconds - Undefined when waiting cannot help.
 */
export function limitExceeded(
  status: number,
  limitNames: readonly string[],
  retryAfterSeconds: number | undefined,
): Problem {
  const what = limitNames.length === 1 ? `the limit ${limitNames[0]}` : limitNames.join(", ");
  const advice =
    retryAfterSeconds === undefined
      ? "the request costs more than can ever be admitted at once"
      : `try again in ${retryAfterSeconds} s`;
  return new Problem(status, `${what} admits no more at the moment; ${advice}`, {
    type: LIMIT_EXCEEDED,
    title: "Too Many Requests",
    violatedPolicies: limitNames,
  });
}

/** The answer for a limit that stays closed while the store is away. */
export function reducedCapacity(limitName: string): Problem {
  return new Problem(
    503,
    `the store cannot be reached and the limit ${JSON.stringify(limitName)} is configured to ` +
      "refuse until it can (fallback: closed)",
    {
      type: REDUCED_CAPACITY,
      title: "Temporary Reduced Capacity",
      violatedPolicies: [limitName],
    },
  );
}

/** A caller's text, quoted, escaped and cut short, for use in a sentence. */
export function excerpt(text: string): string {
  if (text.length <= EXCERPT_MAX) return JSON.stringify(text);
  return `${JSON.stringify(text.slice(0, EXCERPT_MAX))}...`;
}

/**
 * JSON text with everything outside printable ASCII escaped: its length in characters is its length
 * in bytes, and no terminal or log acts on what a caller sent.
 */
export function asciiJson(value: unknown): string {
  return JSON.stringify(value).replace(/[\u007f-\uffff]/g, escapeUnit);
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
