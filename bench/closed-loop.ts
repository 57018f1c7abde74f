/**
 * A load generator that keeps a server busy: every connection sends its next request as soon as
 * it has its answer. A process of its own, so that it can be pinned to the other core; with raw
 * sockets, because it must cost less than what it measures.
 */
import { connect, type Socket } from "node:net";
import { AnswerReader } from "../fleet/answer-reader.ts";
import { type ClientProcess, serveOrders } from "./client-process.ts";

/** Where a server listens. */
export type Address = { readonly path: string } | { readonly port: number };

export interface LoadOrder {
  readonly address: Address;
  /** Requests as bytes, sent in turn. */
  readonly requests: readonly string[];
  readonly connections: number;
  readonly seconds: number;
}

export interface LoadCount {
  readonly perSecond: number;
  /** Answers with another status than 200. */
  readonly strange: number;
}

export const CLIENT_ARGUMENT = "--as-client";

/** The client process. */
export type ClosedLoop = ClientProcess<LoadOrder, LoadCount>;

/** Runs in the process of a `ClosedLoop`. */
export function runClient(): void {
  serveOrders(keepBusy);
}

async function keepBusy(order: LoadOrder): Promise<LoadCount> {
  const { requests, connections, seconds } = order;
  let next = 0;
  let [answers, strange] = [0, 0];
  const sockets: Socket[] = [];
  const send = (socket: Socket): void => {
    socket.write(requests[next] as string, "latin1");
    next = (next + 1) % requests.length;
  };
  let isOver = false;
  const broken = new Promise<never>((_resolve, reject) => {
    for (let i = 0; i < connections; i += 1) {
      const socket = "path" in order.address ? connect(order.address) : connect(order.address);
      socket.setNoDelay(true);
      const reader = new AnswerReader((status) => {
        answers += 1;
        if (status !== 200) strange += 1;
        if (!isOver) send(socket);
      });
      socket.on("data", (chunk: Buffer) => reader.push(chunk));
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
  const perSecond = (answers / Number(process.hrtime.bigint() - startNs)) * 1e9;
  isOver = true;
  for (const socket of sockets) socket.destroy();
  return { perSecond, strange };
}

/** Sends one request. @returns The whole answer, head and body. */
export function askOnce(address: Address, request: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = "path" in address ? connect(address) : connect(address);
    let answer = "";
    const reader = new AnswerReader(() => {
      socket.destroy();
      resolve(answer);
    });
    socket.on("connect", () => socket.write(request, "latin1"));
    socket.on("data", (chunk: Buffer) => {
      answer += chunk.toString("latin1");
      reader.push(chunk);
    });
    socket.on("error", reject);
  });
}
