/**
 * A client that keeps a RESP server busy: every connection sends its next pipeline as soon as it
 * has all replies to the last. Pipelines are bytes that are ready, and replies are counted and not
 * read, because the client must cost less than what it measures.
 */
import { connect, type Socket } from "node:net";
import { serveOrders } from "./client-process.ts";
import type { LoadCount } from "./closed-loop.ts";

export interface RespOrder {
  readonly path: string;
  /** Pipelines as bytes, sent in turn. */
  readonly pipelines: readonly string[];
  /** Requests of each pipeline. */
  readonly depth: number;
  readonly connections: number;
  readonly seconds: number;
}

export const RESP_CLIENT_ARGUMENT = "--as-resp-client";

/** Every reply to a check begins with it, and it is nowhere else. */
const STAR = 0x2a;

/** Runs in a process of its own; see `ClientProcess`. */
export function runRespClient(): void {
  serveOrders(pipelineBusily);
}

/** Keeps all connections busy for the time of the order. */
export async function pipelineBusily(order: RespOrder): Promise<LoadCount> {
  const { path, depth, connections, seconds } = order;
  const pipelines = order.pipelines.map((text) => Buffer.from(text, "latin1"));
  let [next, replies, isOver] = [0, 0, false];
  const sockets: Socket[] = [];
  const send = (socket: Socket): void => {
    socket.write(pipelines[next] as Buffer);
    next = (next + 1) % pipelines.length;
  };
  const broken = new Promise<never>((_resolve, reject) => {
    for (let i = 0; i < connections; i += 1) {
      const socket = connect({ path });
      let missing = depth;
      socket.on("data", (chunk: Buffer) => {
        // An error is no reply to a check; each would be missed for ever, and told here.
        if (chunk.includes("-ERR")) reject(new Error(`the server refuses: ${chunk.toString()}`));
        const come = repliesIn(chunk);
        replies += come;
        missing -= come;
        if (missing > 0 || isOver) return;
        missing = depth;
        send(socket);
      });
      socket.on("error", reject);
      socket.on("close", () => {
        if (!isOver) reject(new Error("the server closed a connection"));
      });
      socket.on("connect", () => send(socket));
      sockets.push(socket);
    }
  });
  const startNs = process.hrtime.bigint();
  await Promise.race([broken, new Promise((resolve) => setTimeout(resolve, seconds * 1_000))]);
  const perSecond = (replies / Number(process.hrtime.bigint() - startNs)) * 1e9;
  isOver = true;
  for (const socket of sockets) socket.destroy();
  return { perSecond, strange: 0 };
}

export function repliesIn(chunk: Buffer): number {
  let count = 0;
  for (let at = chunk.indexOf(STAR); at >= 0; at = chunk.indexOf(STAR, at + 1)) count += 1;
  return count;
}

/** A command as a client sends it. @param words - Of one byte a character. */
export function commandOf(words: readonly string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join("")}`;
}
