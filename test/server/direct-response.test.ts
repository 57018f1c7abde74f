import { createServer } from "node:http";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { createHttpApi } from "../../src/server/http-api.ts";
import { boundPort, DEFAULT_BOUNDS } from "../../src/server/listener.ts";
import { ExactDecider, limitOf } from "./exact-decider.ts";
import { openSocket, readToEnd, type Served, serve } from "./http-client.ts";

let decider: ExactDecider;
let served: Served;

beforeEach(async () => {
  decider = new ExactDecider([limitOf("small", { burst: 100 })]);
  served = await serve(decider);
});

afterEach(async () => {
  await served.stop();
  expect(served.faults).toEqual([]);
});

const CLOSE = "Connection: close\r\n";
const LAST = `GET /v1/check?limit=small&key=last HTTP/1.1\r\nHost: x\r\n${CLOSE}\r\n`;

function post(body: string, headers = ""): string {
  const head = `POST /v1/check HTTP/1.1\r\nHost: x\r\n${headers}`;
  return `${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

function check(cost: number): string {
  return JSON.stringify({ limit: "small", key: "k", cost });
}

/** Sends the parts, each in a turn of its own, and reads until the other side closes. */
async function talk(port: number, parts: readonly string[]): Promise<string> {
  const socket = await openSocket({ port });
  const text = readToEnd(socket);
  for (const part of parts) {
    await new Promise<void>((resolve) => socket.write(part, "latin1", () => resolve()));
    await new Promise((resolve) => setImmediate(resolve));
  }
  return text;
}

function statuses(text: string): number[] {
  return [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, code]) => Number(code));
}

function remaining(text: string): number[] {
  return [...text.matchAll(/"remaining":(\d+)/g)].map(([, digits]) => Number(digits));
}

describe("an answer that leaves in one write", () => {
  it.each([
    ["an admission", post(check(1))],
    ["a denial", post(check(90)) + post(check(90))],
    [
      "a denial that speaks",
      `${post(check(90))}${post(check(90)).replace("check", "check?deny_status=429")}`,
    ],
    ["a check by query", "GET /v1/check?limit=small&key=a HTTP/1.1\r\nHost: x\r\n\r\n"],
    ["the list of limits", "GET /v1/limits HTTP/1.1\r\nHost: x\r\n\r\n"],
    ["a HEAD", "HEAD /v1/limits HTTP/1.1\r\nHost: x\r\n\r\n"],
    ["a client of HTTP/1.0", "GET /v1/limits HTTP/1.0\r\n\r\n"],
    ["an unknown limit", post('{"limit":"smal","key":"k"}')],
  ])("has the bytes that Node would write for %s", async (_name, requests) => {
    const handler = createHttpApi(new ExactDecider(decider.limits()), {
      clock: { monotonicUs: () => 0 },
      wallMs: () => Date.now(),
      onUnexpectedError: (error) => served.faults.push(error),
    });
    const plain = createServer({ keepAliveTimeout: DEFAULT_BOUNDS.keepAliveTimeoutMs }, handler);
    await new Promise<void>((resolve) => plain.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void plain.close());
    const undated = (text: string): string => text.replace(/Date: .{29}\r\n/g, "Date: -\r\n");
    const theirs = await talk(boundPort(plain) ?? 0, [requests + LAST]);
    const ours = await talk(served.port, [requests + LAST]);
    expect(ours).toMatch(/Date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\r\n/);
    expect(undated(ours)).toBe(undated(theirs));
  });

  it("tells the second in which it was made", async () => {
    const before = Math.floor(Date.now() / 1_000);
    const { headers } = await served.client.check({ limit: "small", key: "k" });
    const told = Date.parse(headers.date ?? "") / 1_000;
    expect(told).toBeGreaterThanOrEqual(before);
    expect(told).toBeLessThanOrEqual(Date.now() / 1_000);
  });

  it("keeps its place among refusals that Node writes", async () => {
    const text = await talk(served.port, [post(check(1)) + post("{") + post(check(2)) + LAST]);
    expect(statuses(text)).toEqual([200, 400, 200, 200]);
    expect(remaining(text).slice(0, 2)).toEqual([99, 97]);
  });

  it("closes the connection when the client asks for it", async () => {
    const text = await talk(served.port, [post(check(1), CLOSE)]);
    expect(text).toContain(CLOSE);
    expect(remaining(text)).toEqual([99]);
  });

  it("is not made before a client has read most of the earlier ones", async () => {
    const limits = Array.from({ length: 40 }, (_, index) => limitOf(`limit-${index}`));
    let made = 0;
    const wide = new ExactDecider(limits);
    wide.limits = () => {
      made += 1;
      return limits;
    };
    const { port, client, stop } = await serve(wide);
    onTestFinished(stop);
    const count = 4_000;
    const socket = await openSocket({ port });
    socket.write("GET /v1/limits HTTP/1.1\r\nHost: x\r\n\r\n".repeat(count) + LAST);
    // Nothing reads from the socket yet; another connection is served many times over.
    for (let i = 0; i < 20; i += 1) await client.get("/v1/limits/limit-1");
    expect(made).toBeLessThan(count);
    expect(statuses(await readToEnd(socket))).toHaveLength(count + 1);
  });
});

describe("a body that is handed over whole", () => {
  it("may come in any number of parts", async () => {
    const body = check(7);
    const bytes = post(body);
    const parts = [...bytes].map((character) => character);
    const text = await talk(served.port, [...parts, LAST]);
    expect(remaining(text)[0]).toBe(93);
  });

  it("may be chunked, and is read as a stream then", async () => {
    const body = check(7);
    const head = "POST /v1/check HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    const chunks = `5\r\n${body.slice(0, 5)}\r\n${(body.length - 5).toString(16)}\r\n${body.slice(5)}`;
    const text = await talk(served.port, [`${head}${chunks}\r\n0\r\n\r\n`, LAST]);
    expect(remaining(text)[0]).toBe(93);
  });

  it("may be announced with Expect", async () => {
    const [head = "", body = ""] = post(check(7), "Expect: 100-continue\r\n").split("\r\n\r\n");
    const text = await talk(served.port, [`${head}\r\n\r\n`, body, LAST]);
    expect(statuses(text)).toEqual([100, 200, 200]);
  });

  it("is ignored where a resource takes none", async () => {
    const body = "x".repeat(200_000);
    const get = `GET /v1/limits HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n`;
    const text = await talk(served.port, [get + body.slice(0, 10), body.slice(10) + LAST]);
    expect(statuses(text)).toEqual([200, 200]);
  });

  it("is nothing when the caller goes away before it is complete", async () => {
    const socket = await openSocket({ port: served.port });
    await new Promise<void>((resolve) =>
      socket.write(post(check(7)).slice(0, -3), () => resolve()),
    );
    socket.destroy();
    const { json } = await served.client.check({ limit: "small", key: "k", cost: 0 });
    expect(json.remaining).toBe(100);
  });
});
