/**
 * The baseline of the HTTP benchmark: the least that `node:http` can do. It reads the request's
 * body and answers every request with the same status, headers and body, those of a real
 * decision.
 */
import { createServer } from "node:http";

export const BARE_ARGUMENT = "--as-bare-server";

export interface BareAnswer {
  /** Names and values in turn. */
  readonly headers: readonly string[];
  readonly body: string;
}

/** Headers that `node:http` adds to every answer by itself. */
const OWN_HEADERS = new Set(["date", "connection", "keep-alive"]);

/** What a bare server must say to answer the bytes of this answer. */
export function bareAnswerOf(answer: string): BareAnswer {
  const headEnd = answer.indexOf("\r\n\r\n");
  const headers = answer
    .slice(0, headEnd)
    .split("\r\n")
    .slice(1)
    .flatMap((line) => {
      const colon = line.indexOf(":");
      const name = line.slice(0, colon);
      return OWN_HEADERS.has(name.toLowerCase()) ? [] : [name, line.slice(colon + 1).trim()];
    });
  return { headers, body: answer.slice(headEnd + 4) };
}

/** Runs in a process of its own. @param argument - Where to listen and what to say, as JSON. */
export function runBareServer(argument: string): void {
  const { path, port, answer } = JSON.parse(argument) as {
    readonly path: string;
    readonly port: number;
    readonly answer: BareAnswer;
  };
  const create = () =>
    createServer((req, res) => {
      req.on("data", () => {});
      req.on("end", () => {
        res.writeHead(200, [...answer.headers]);
        res.end(answer.body, "latin1");
      });
    });
  create().listen(path);
  create().listen(port, "127.0.0.1");
}
