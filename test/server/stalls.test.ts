/**
 * A process that did not run for a while finds its timers due and its requests unread. What came in
 * time is answered, however late it is read.
 */
import { once } from "node:events";
import { stat } from "node:fs/promises";
import type { RequestListener } from "node:http";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { describe, expect, it, onTestFinished } from "vitest";
import { type ListenerBounds, listenHttp } from "../../src/server/listener.ts";
import { listenResp } from "../../src/server/resp/resp-listener.ts";
import { partsOf } from "../resp/resp-door.ts";
import { stall } from "../support/stall.ts";
import { ExactDecider, limitOf } from "./exact-decider.ts";
import { openSocket, readToEnd } from "./http-client.ts";

const TIMEOUT_MS = 200;
/** Longer than any timeout here. */
const STALL_MS = 450;
const GET = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
const LAST = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
const POST = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody";

const hello: RequestListener = (req, res) => {
  req.resume().once("end", () => res.end("hello"));
};

async function connectTo(
  bounds: Partial<ListenerBounds>,
  handler: RequestListener = hello,
): Promise<Socket> {
  const address = { kind: "tcp", host: "127.0.0.1", port: 0 } as const;
  const listener = await listenHttp(handler, address, bounds);
  onTestFinished(() => listener.stop(100));
  return openSocket({ port: listener.port ?? 0 });
}

const late = { headersTimeoutMs: TIMEOUT_MS, requestTimeoutMs: TIMEOUT_MS } as const;

/** Writes to the kernel, and then nothing runs in this process for a while. */
async function sayAndStall(socket: Socket, text: string): Promise<void> {
  // Neither within the phase of timers nor within that of reading, so that the next are timers.
  await new Promise((resolve) => setImmediate(resolve));
  socket.write(text);
  stall(STALL_MS);
}

const statuses = (text: string): readonly string[] =>
  [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status as string);

describe("after a stall", () => {
  it("the first requests of a connection that had sent nothing are answered", async () => {
    const socket = await connectTo(late);
    const text = readToEnd(socket);
    await sayAndStall(socket, GET + LAST);
    expect(statuses(await text)).toEqual(["200", "200"]);
  });

  it.each([
    ["head", POST.slice(0, 20), POST.slice(20)],
    ["body", POST.slice(0, -2), POST.slice(-2)],
  ])("a request whose %s was read in part is answered", async (_name, begin, rest) => {
    const socket = await connectTo(late);
    socket.write(begin);
    await sleep(20);
    const text = readToEnd(socket);
    await sayAndStall(socket, rest + LAST);
    expect(statuses(await text)).toEqual(["200", "200"]);
  });

  it("a request that has not come in full is answered 408", async () => {
    const socket = await connectTo(late);
    socket.write(POST.slice(0, 20));
    await sleep(20);
    const text = readToEnd(socket);
    await sayAndStall(socket, POST.slice(20, -2));
    expect(statuses(await text)).toEqual(["408"]);
  });

  it("the next request of an idle connection is answered", async () => {
    const socket = await connectTo({ keepAliveTimeoutMs: TIMEOUT_MS });
    socket.write(GET);
    await once(socket, "data");
    await sleep(TIMEOUT_MS / 2); // so that it has been seen idle
    const text = readToEnd(socket);
    await sayAndStall(socket, LAST);
    expect(statuses(await text)).toEqual(["200"]);
  });

  it("the next request over the Redis protocol is answered", async () => {
    const decider = new ExactDecider([limitOf("api")]);
    const address = { kind: "tcp", host: "127.0.0.1", port: 0 } as const;
    const parts = partsOf(decider, () => decider.nowUs);
    const listener = await listenResp(parts, address, { idleTimeoutMs: TIMEOUT_MS });
    onTestFinished(() => listener.stop(100));
    const socket = await openSocket({ port: listener.port ?? 0 });
    socket.write("PING\r\n");
    await once(socket, "data");
    await sleep(TIMEOUT_MS / 2);
    const text = readToEnd(socket);
    await sayAndStall(socket, "PING\r\nQUIT\r\n");
    expect(await text).toBe("+PONG\r\n+OK\r\n");
  });
});

describe("a connection over which nothing has come yet", () => {
  it("has the time of an idle one, not that of a request", async () => {
    const keepAliveTimeoutMs = 4 * TIMEOUT_MS;
    const socket = await connectTo({ ...late, keepAliveTimeoutMs });
    const openedAt = performance.now();
    await once(socket.resume(), "close");
    expect(performance.now() - openedAt).toBeGreaterThan(keepAliveTimeoutMs - 50);
  });

  it("has its first request timed all the same", async () => {
    const socket = await connectTo(late);
    await sleep(2 * TIMEOUT_MS);
    const text = readToEnd(socket);
    socket.write(GET.slice(0, 20));
    expect(statuses(await text)).toEqual(["408"]);
  });
});

describe("a request whose body does not come", () => {
  it("is answered 408 before there is another answer", async () => {
    const socket = await connectTo(late);
    const text = readToEnd(socket);
    socket.write(POST.slice(0, -2));
    expect(statuses(await text)).toEqual(["408"]);
  });

  it("is cut off when a part of its answer has gone", async () => {
    const socket = await connectTo(late, (_req, res) => void res.write("a part"));
    const text = readToEnd(socket);
    socket.write(POST.slice(0, -2));
    expect(statuses(await text)).toEqual(["200"]);
  });
});

/** Says something over a connection of its own, from a thread that runs while this one does not. */
const ELSEWHERE = `
  const { workerData, parentPort } = require("node:worker_threads");
  let text = "";
  require("node:net").connect(workerData.port, "127.0.0.1")
    .on("error", ({ message }) => { text = message; })
    .on("data", (chunk) => { text += chunk; })
    .on("close", () => parentPort.postMessage(text))
    .write(workerData.request);
`;

async function askFromElsewhere(
  port: number,
  request: string,
): Promise<{ answer: Promise<string> }> {
  const worker = new Worker(ELSEWHERE, { eval: true, workerData: { port, request } });
  const answer = once(worker, "message").then(([text]) => String(text));
  // As the handler of a signal: within the phase of reading, which is over for this turn.
  await stat(".");
  stall(STALL_MS);
  return { answer };
}

describe("a listener that stops after a stall", () => {
  it("answers requests over connections that it has not accepted yet", async () => {
    const address = { kind: "tcp", host: "127.0.0.1", port: 0 } as const;
    const listener = await listenHttp(hello, address);
    const { answer } = await askFromElsewhere(listener.port ?? 0, GET);
    await listener.stop(1_000);
    expect(await answer).toContain("Connection: close");
  });

  it("does so over the Redis protocol", async () => {
    const decider = new ExactDecider([limitOf("api")]);
    const address = { kind: "tcp", host: "127.0.0.1", port: 0 } as const;
    const listener = await listenResp(
      partsOf(decider, () => 0),
      address,
    );
    const { answer } = await askFromElsewhere(listener.port ?? 0, "PING\r\n");
    await listener.stop(1_000);
    expect(await answer).toBe("+PONG\r\n");
  });
});
