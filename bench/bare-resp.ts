/**
 * The baseline of the RESP benchmark: the least that a server of Node can do. It counts the
 * requests in what has come and answers each with the bytes of a real reply.
 */
import { createServer } from "node:net";
import { repliesIn } from "./resp-load.ts";

export const BARE_RESP_ARGUMENT = "--as-bare-resp-server";

export interface BareResp {
  readonly path: string;
  readonly reply: string;
}

/** Runs in a process of its own. @param argument - A `BareResp` as JSON. */
export function runBareRespServer(argument: string): void {
  const { path, reply } = JSON.parse(argument) as BareResp;
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (chunk: Buffer) => {
      // Requests begin with the same byte as replies do.
      const requests = repliesIn(chunk);
      if (requests > 0) socket.write(reply.repeat(requests), "latin1");
    });
  });
  server.listen(path);
}
