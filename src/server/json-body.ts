/**
 * Request bodies: collected up to a maximum, then read as strict UTF-8 and JSON.
 *
 * A body over the maximum is answered at once. What still arrives of it is thrown away unread, so
 * that the connection stays usable and the caller gets to see the answer (closing a socket with
 * unread bytes resets it, often before the answer was read); beyond a second maximum the connection
 * is cut.
 */
import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { badRequest, Problem } from "./problem.ts";
import { WholeRequest } from "./whole-request.ts";

/** Largest body of a request. */
export const BODY_BYTES_MAX = 65_536;

/** Most bytes of an oversized body that are thrown away before the connection is cut. */
export const DISCARD_BYTES_MAX = 1_048_576;

const EMPTY = Buffer.alloc(0);

/**
 * Collects the body of a request.
 *
 * @param done - Called exactly once with the bytes or with the problem, or never when the caller
 *   goes away before the body is complete.
 */
export function readBody(req: IncomingMessage, done: (body: Buffer | Problem) => void): void {
  if (req instanceof WholeRequest && req.collect(BODY_BYTES_MAX, done)) return;
  let chunks: Buffer[] | undefined;
  let first: Buffer | undefined;
  let size = 0;
  req.on("data", (chunk: Buffer) => {
    const before = size;
    size += chunk.length;
    if (size > BODY_BYTES_MAX) {
      chunks = undefined;
      first = undefined;
      if (size > DISCARD_BYTES_MAX) req.destroy();
      if (before <= BODY_BYTES_MAX) done(bodyTooLarge());
    } else if (first === undefined) {
      first = chunk;
    } else {
      chunks ??= [first];
      chunks.push(chunk);
    }
  });
  req.on("end", () => {
    if (size > BODY_BYTES_MAX) return;
    done(chunks === undefined ? (first ?? EMPTY) : Buffer.concat(chunks));
  });
}

/** Throws a body away unread; one that is larger than `DISCARD_BYTES_MAX` cuts the connection. */
export function dropBody(req: IncomingMessage): void {
  let size = 0;
  req.on("data", (chunk: Buffer) => {
    size += chunk.length;
    if (size > DISCARD_BYTES_MAX) req.destroy();
  });
}

function bodyTooLarge(): Problem {
  return new Problem(413, `the body is larger than ${BODY_BYTES_MAX} bytes`);
}

/** Reads bytes as one JSON value. Bytes that are not UTF-8 are refused, never replaced. */
export function parseJson(bytes: Buffer): unknown {
  if (bytes.length === 0) return badRequest("the body is empty; a JSON object is expected");
  if (!isUtf8(bytes)) return badRequest("the body is not valid UTF-8");
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch (error) {
    // The parser's message is one line about the text; the stack stays here.
    return badRequest(`the body is not JSON: ${error instanceof Error ? error.message : "?"}`);
  }
}

/** What a JSON value is, for a sentence. */
export function describeJson(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object") return "an object";
  if (typeof value === "string") return "a string";
  return String(value);
}
