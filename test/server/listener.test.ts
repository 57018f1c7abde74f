import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { type HttpListener, type ListenerBounds, listenHttp } from "../../src/server/listener.ts";
import { HttpClient, openSocket, readToEnd } from "./http-client.ts";

type Handler = (req: IncomingMessage, res: ServerResponse) => void;

const hello: Handler = (_req, res) => {
  res.end("hello");
};

async function listen(
  handler: Handler,
  bounds: Partial<ListenerBounds> = {},
): Promise<HttpListener & { port: number }> {
  const address = { kind: "tcp", host: "127.0.0.1", port: 0 } as const;
  const listener = await listenHttp(handler, address, bounds);
  onTestFinished(() => listener.stop(100));
  return { ...listener, port: listener.port ?? 0 };
}

const GET = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

describe("a TCP listener", () => {
  it("tells the port that it bound and keeps connections", async () => {
    const { port, address } = await listen(hello);
    expect(address).toBe(`127.0.0.1:${port}`);
    const client = new HttpClient({ port });
    const [first, second] = [await client.get("/"), await client.get("/")];
    client.close();
    expect(first.text).toBe("hello");
    expect(first.headers["keep-alive"]).toBe("timeout=120");
    expect(second.localPort).toBe(first.localPort);
  });

  it("says that an address is in use", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    onTestFinished(() => void other.close());
    const bound = other.address();
    const port = typeof bound === "object" ? (bound?.port ?? 0) : 0;
    await expect(listenHttp(hello, { kind: "tcp", host: "127.0.0.1", port })).rejects.toThrow(
      `cannot listen on 127.0.0.1:${port}: the address is in use`,
    );
  });

  it("closes connections beyond the maximum and serves the others", async () => {
    const { port } = await listen(hello, { connectionsMax: 1 });
    const first = await openSocket({ port });
    const second = await openSocket({ port });
    const ended = readToEnd(second).catch(() => "");
    expect(await ended).toBe("");
    first.write(GET);
    const [chunk] = await once(first, "data");
    expect(String(chunk)).toContain("hello");
    first.destroy();
  });
});

describe("a connection over which nothing goes", () => {
  it("is closed after the keep-alive timeout, no earlier, while busy ones stay", async () => {
    const keepAliveTimeoutMs = 400;
    const { port } = await listen(hello, { keepAliveTimeoutMs });
    const [idle, busy] = [await openSocket({ port }), await openSocket({ port })];
    idle.write(GET);
    const [chunk] = await once(idle, "data");
    const answeredAt = performance.now();
    expect(String(chunk)).toContain("Keep-Alive: timeout=0");
    let isClosed = false;
    const closed = once(idle, "close").then(() => {
      isClosed = true;
    });
    while (!isClosed) {
      busy.write(GET);
      await once(busy, "data");
    }
    await closed;
    expect(performance.now() - answeredAt).toBeGreaterThanOrEqual(keepAliveTimeoutMs - 1);
    expect(busy.readyState).toBe("open");
    busy.destroy();
  });
});

describe("what is not HTTP", () => {
  it.each([
    ["nonsense", "nonsense\r\n\r\n", 400],
    ["a head without end", `GET / HTTP/1.1\r\nx: ${"y".repeat(20_000)}`, 431],
    ["a bad length", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400],
  ])(
    "such as %s is answered with a problem, and the connection closed",
    async (_name, text, code) => {
      const { port } = await listen(hello);
      const socket = await openSocket({ port });
      socket.write(text);
      const answer = await readToEnd(socket);
      expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${code} `));
      expect(answer).toContain("application/problem+json");
      expect(answer).not.toMatch(/node:|at .*\(/);
    },
  );

  it("is not answered in place of a check that still waits", async () => {
    const held: ServerResponse[] = [];
    const { port } = await listen((_req, res) => held.push(res));
    const socket = await openSocket({ port });
    socket.write(`${GET}nonsense\r\n\r\n`);
    expect(await readToEnd(socket)).toBe("");
  });

  it("is answered 408 when a request takes too long", { timeout: 15_000 }, async () => {
    const { port } = await listen(hello, { headersTimeoutMs: 200, requestTimeoutMs: 200 });
    const socket = await openSocket({ port });
    socket.write("GET / HTTP/1.1\r\nHost:");
    expect(await readToEnd(socket)).toMatch(/^HTTP\/1\.1 408 /);
  });
});

describe("a listener that stops", () => {
  it("answers what is in flight with Connection: close, then is done", async () => {
    const held: ServerResponse[] = [];
    const arrived = new Promise<void>((resolve) => {
      setHandler = (_req, res) => {
        held.push(res);
        resolve();
      };
    });
    const listener = await listen((req, res) => setHandler(req, res));
    const socket = await openSocket({ port: listener.port });
    socket.write(GET);
    await arrived;
    let stopped = false;
    const stopping = listener.stop(5_000).then(() => {
      stopped = true;
    });
    await expect(openSocket({ port: listener.port }).then(refusedLater)).rejects.toThrow();
    expect(stopped).toBe(false);
    held[0]?.end("late");
    const answer = await readToEnd(socket);
    expect(answer).toContain("Connection: close");
    expect(answer).toContain("late");
    await stopping;
  });

  it("closes connections that are idle or have never sent anything at once", async () => {
    const listener = await listen(hello);
    const idle = await openSocket({ port: listener.port });
    idle.write(GET);
    await once(idle, "data");
    const silent = await openSocket({ port: listener.port });
    const startedAt = performance.now();
    const ends = [readToEnd(idle), readToEnd(silent).catch(() => "")];
    await Promise.all([listener.stop(20_000), ...ends]);
    expect(performance.now() - startedAt).toBeLessThan(5_000);
  });

  it("cuts what is not answered in time", async () => {
    let arrived = (): void => {};
    const request = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const listener = await listen(() => arrived());
    const socket = await openSocket({ port: listener.port });
    socket.on("error", () => {});
    socket.write(GET);
    await request;
    const closed = once(socket, "close");
    await Promise.all([listener.stop(50), listener.stop(50), closed]);
  });

  it("answers requests that had already arrived", async () => {
    const listener = await listen(hello);
    const client = await openSocket({ port: listener.port });
    client.write(GET);
    await once(client, "data");
    // Once written, the request is in the kernel; the listener has not read it yet.
    await new Promise<void>((resolve) => client.write(GET, () => resolve()));
    const text = readToEnd(client);
    await listener.stop(1_000);
    expect(await text).toContain("Connection: close");
  });
});

let setHandler: Handler = hello;

/** A backlog may accept a connection that the stopping server then drops. */
async function refusedLater(socket: {
  once(event: "close", done: () => void): unknown;
}): Promise<void> {
  await new Promise<void>((resolve) => socket.once("close", resolve));
  throw new Error("dropped");
}
