import { once } from "node:events";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ExactDecider, limitOf } from "./exact-decider.ts";
import { openSocket, readToEnd, type Served, serve } from "./http-client.ts";

let decider: ExactDecider;
let served: Served;
/** Lets the held checks go, in the order in which they came. */
let releases: (() => void)[];

beforeEach(async () => {
  decider = new ExactDecider([limitOf("small", { burst: 100 })]);
  served = await serve(decider);
  releases = [];
});

afterEach(async () => {
  await served.stop();
  expect(served.faults).toEqual([]);
});

function holdChecks(): void {
  decider.hold = () => new Promise((resolve) => releases.push(resolve));
}

function post(cost: number, close = false): string {
  const body = JSON.stringify({ limit: "small", key: "k", cost });
  const connection = close ? "Connection: close\r\n" : "";
  const head = `POST /v1/check HTTP/1.1\r\nHost: x\r\n${connection}`;
  return `${head}Content-Length: ${body.length}\r\n\r\n${body}`;
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

describe("a check that waits for the store", () => {
  it("is answered before the checks sent after it on the same connection", async () => {
    holdChecks();
    const socket = await openSocket({ port: served.port });
    socket.write(post(1));
    await until(() => releases.length === 1);
    decider.hold = undefined;
    socket.write(post(10) + post(20, true));
    await until(() => decider.decided === 2);
    releases[0]?.();
    const text = await readToEnd(socket);
    const remaining = [...text.matchAll(/"remaining":(\d+)/g)].map(([, digits]) => Number(digits));
    // Decided last, as its bucket was asked last, and yet answered first.
    expect(remaining).toEqual([69, 90, 70]);
  });

  it("does not keep other connections waiting", async () => {
    holdChecks();
    const socket = await openSocket({ port: served.port });
    socket.write(post(1, true));
    await until(() => releases.length === 1);
    decider.hold = undefined;
    const { json } = await served.client.check({ limit: "small", key: "k" });
    expect(json.remaining).toBe(99);
    releases[0]?.();
    expect(await readToEnd(socket)).toContain('"remaining":98');
  });

  it("may lose its caller without harm to anything else", async () => {
    holdChecks();
    for (let i = 0; i < 20; i += 1) {
      const socket = await openSocket({ port: served.port });
      socket.write(post(1) + post(1));
      await until(() => releases.length === 2 * (i + 1));
      socket.resetAndDestroy();
      await once(socket, "close");
    }
    for (const release of releases) release();
    await until(() => decider.decided === 40);
    decider.hold = undefined;
    expect((await served.client.check({ limit: "small", key: "k" })).json.remaining).toBe(59);
  });
});

describe("a body in pieces", () => {
  it("is put together, down to single bytes", async () => {
    const socket = await openSocket({ port: served.port });
    socket.setNoDelay(true);
    const body = Buffer.from(JSON.stringify({ limit: "small", key: "€".repeat(10) }));
    socket.write(`POST /v1/check HTTP/1.1\r\nHost: x\r\nConnection: close\r\n`);
    socket.write("Transfer-Encoding: chunked\r\n\r\n");
    for (const byte of body) {
      socket.write(Buffer.concat([Buffer.from("1\r\n"), Buffer.of(byte), Buffer.from("\r\n")]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    socket.write("0\r\n\r\n");
    expect(await readToEnd(socket)).toContain('"remaining":99');
  });

  it("that never completes spends nothing", async () => {
    const socket = await openSocket({ port: served.port });
    await new Promise<void>((resolve) => socket.write(post(1).slice(0, -1), () => resolve()));
    // A round trip on another connection shows that the listener has read what came before.
    expect((await served.client.get("/v1/limits")).status).toBe(200);
    socket.destroy();
    await once(socket, "close");
    expect((await served.client.check({ limit: "small", key: "k" })).json.remaining).toBe(99);
  });
});
