/** Writing answers: head and body in one go, always with their length. */
import type { ServerResponse } from "node:http";
import { DirectResponse } from "./direct-response.ts";
import type { Problem } from "./problem.ts";

const NO_HEADERS: readonly string[] = [];

/**
 * Sends JSON text.
 *
 * @param json - In ASCII, so that its length is its size.
 * @param headers - Names and values in turn.
 */
export function sendJson(
  res: ServerResponse,
  status: number,
  json: string,
  headers: readonly string[] = NO_HEADERS,
): void {
  if (res instanceof DirectResponse) {
    let head = `Content-Type: application/json\r\nContent-Length: ${json.length}\r\n`;
    for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`;
    if (res.sendWhole(status, head, json)) return;
  }
  send(res, status, "application/json", json, headers);
}

export function sendProblem(
  res: ServerResponse,
  problem: Problem,
  headers: readonly string[] = NO_HEADERS,
): void {
  const { allow } = problem.fields;
  const all = allow === undefined ? headers : [...headers, "Allow", allow];
  send(res, problem.status, "application/problem+json", problem.json(), all);
}

/** Answers OPTIONS: what a resource can be asked. */
export function sendOptions(res: ServerResponse, allow: string): void {
  res.writeHead(204, ["Allow", allow]);
  res.end();
}

/** Answers with a status and headers alone. @param headers - Names and values in turn. */
export function sendEmpty(
  res: ServerResponse,
  status: number,
  headers: readonly string[] = NO_HEADERS,
): void {
  res.writeHead(status, ["Content-Length", "0", ...headers]);
  res.end();
}

/** @param body - In ASCII. */
export function send(
  res: ServerResponse,
  status: number,
  contentType: string,
  body: string,
  headers: readonly string[] = NO_HEADERS,
): void {
  // A flat array of names and values is the one form that Node writes without building objects.
  res.writeHead(status, [
    "Content-Type",
    contentType,
    "Content-Length",
    String(body.length),
    ...headers,
  ]);
  res.end(body, "latin1");
}
