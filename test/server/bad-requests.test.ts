import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ExactDecider, HOUR_US, limitOf } from "./exact-decider.ts";
import { type HttpClient, openSocket, type Served, serve } from "./http-client.ts";

let decider: ExactDecider;
let served: Served;
let client: HttpClient;

beforeEach(async () => {
  decider = new ExactDecider([limitOf("hourly", { tokens: 1, spanUs: HOUR_US, burst: 10 })]);
  served = await serve(decider);
  client = served.client;
});

afterEach(async () => {
  await served.stop();
  expect(served.faults).toEqual([]);
});

async function spendOne(key = "k"): Promise<unknown> {
  return (await client.check({ limit: "hourly", key })).json.remaining;
}

describe("O19 (a) methods that are no check", () => {
  it("spends nothing for HEAD and OPTIONS and keeps the connection", async () => {
    const path = "/v1/check?limit=hourly&key=k";
    const get = await client.get(path);
    const head = await client.send("HEAD", path);
    const options = await client.send("OPTIONS", path);
    const post = await client.check({ limit: "hourly", key: "k" });
    expect(get.json.remaining).toBe(9);
    expect([head.status, head.text, head.headers.allow]).toEqual([405, "", "POST, GET, OPTIONS"]);
    expect([options.status, options.text]).toEqual([204, ""]);
    expect(options.headers.allow).toBe("POST, GET, OPTIONS");
    expect(post.json.remaining).toBe(8);
    expect(new Set([get, head, options, post].map((answer) => answer.localPort)).size).toBe(1);
  });
});

describe("O19 (b) bodies that are no check", () => {
  const withKey = (key: string): string => `{"limit":"hourly","key":${key}}`;
  const cases: [string, string | Buffer][] = [
    ["broken JSON", "{bad"],
    ["nothing", ""],
    ["an array", "[]"],
    ["null", "null"],
    ["a string", '"x"'],
    ["a number", "7"],
    ["no limit", '{"key":"k","cost":1e999}'],
    ["an infinite cost", '{"limit":"hourly","key":"k","cost":1e999}'],
    ["a limit of the wrong type", '{"limit":["hourly"],"key":"k"}'],
    ["no key", '{"limit":"hourly"}'],
    ["an empty key", withKey('""')],
    ["a key of 257 bytes", withKey(`"${"k".repeat(257)}"`)],
    ["a key of 86 characters and 258 bytes", withKey(`"${"€".repeat(86)}"`)],
    ["half a surrogate pair in the key", withKey('"a\\ud800"')],
    ["a surrogate pair the wrong way round", withKey('"\\udc00\\ud800"')],
    ["text after the value", `${withKey('"k"')}x`],
    ["bytes that are not UTF-8", Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d])],
    ["a key that is not UTF-8", Buffer.from(withKey('"k\xff"'), "latin1")],
    ["a byte order mark", `\ufeff${withKey('"k"')}`],
    ["deep nesting", "[".repeat(60_000)],
    ["checks that are no list", '{"checks":{"0":{"limit":"hourly","key":"k"}}}'],
    ["the body inside __proto__", `{"__proto__":${withKey('"k"')}}`],
  ];

  it.each(cases)("answers %s with a problem, spends nothing, stays usable", async (_name, body) => {
    const { status, json, headers, text, localPort } = await client.send("POST", "/v1/check", body);
    expect(status).toBe(400);
    expect(headers["content-type"]).toBe("application/problem+json");
    expect(json).toMatchObject({ type: "about:blank", title: "Bad Request", status: 400 });
    expect(String(json.detail).length).toBeGreaterThan(10);
    expect(text).not.toMatch(/node:|\.ts|\.js|\n/);
    expect(decider.decided).toBe(0);
    const next = await client.check({ limit: "hourly", key: "k" });
    expect(next.json.remaining).toBe(9);
    expect(next.localPort).toBe(localPort);
  });

  it("takes a key of 256 bytes and one of a whole surrogate pair", async () => {
    expect(await spendOne("k".repeat(256))).toBe(9);
    expect(await spendOne(`${"€".repeat(85)}k`)).toBe(9);
    expect(await spendOne("💥")).toBe(9);
  });

  it("takes __proto__ and other unknown fields as nothing", async () => {
    const body = '{"limit":"hourly","key":"k","__proto__":{"cost":5},"constructor":1}';
    expect((await client.send("POST", "/v1/check", body)).json.remaining).toBe(9);
    expect(({} as { cost?: number }).cost).toBeUndefined();
  });
});

describe("O19 (c) a field that is given twice", () => {
  it("counts with its last value", async () => {
    const body = '{"limit":"hourly","key":"k","cost":1,"cost":5}';
    expect((await client.send("POST", "/v1/check", body)).json.remaining).toBe(5);
  });
});

describe("O19 (d) ten thousand bad bodies", () => {
  const bodies = ["{bad", "[]", '{"limit":"nope","key":"k"}', '{"limit":"hourly","cost":1e999}'];
  const burst = Array.from({ length: 20 }, (_, index) => {
    const body = bodies[index % bodies.length] ?? "";
    return `POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  }).join("");

  it("in five seconds do not keep good checks waiting", { timeout: 60_000 }, async () => {
    const quiet: number[] = [];
    for (let i = 0; i < 500; i += 1) quiet.push(await timeOfGoodCheck());

    const socket = await openSocket({ port: served.port });
    let answered = 0;
    socket.on("data", (bytes) => {
      answered += bytes.toString("latin1").split("HTTP/1.1 40").length - 1;
    });
    let sent = 0;
    const flood = setInterval(() => {
      socket.write(burst);
      sent += 20;
      if (sent >= 10_000) clearInterval(flood);
    }, 10);
    const waits: number[] = [];
    // A head may be split between two chunks, which hides a few answers from the count.
    while (sent < 10_000 || answered < 9_900) waits.push(await timeOfGoodCheck());
    socket.destroy();

    expect(waits.length).toBeGreaterThan(100);
    // Other work on the machine delays good checks as well: it is measured before, for a reference.
    expect(p99(waits)).toBeLessThanOrEqual(Math.max(20, 5 * p99(quiet)));
    expect(await spendOne()).toBe(9);
  });

  async function timeOfGoodCheck(): Promise<number> {
    const startedAt = performance.now();
    await client.check({ limit: "hourly", key: "k", cost: 0 });
    return performance.now() - startedAt;
  }

  function p99(times: readonly number[]): number {
    return times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.99)] ?? 0;
  }
});

describe("a body over the maximum", () => {
  const body = (bytes: number): string => {
    const head = '{"limit":"hourly","key":"k","pad":"';
    return `${head}${"x".repeat(bytes - head.length - 2)}"}`;
  };

  it("is taken at exactly 64 KiB", async () => {
    expect((await client.send("POST", "/v1/check", body(65_536))).json.remaining).toBe(9);
  });

  it.each(["/v1/check", "/v1/check/batch", "/v1/report"])(
    "is answered 413 by %s, spends nothing and leaves the connection usable",
    async (path) => {
      const { status, json, localPort } = await client.send("POST", path, body(65_537));
      expect(status).toBe(413);
      expect(json.detail).toContain("65536");
      const next = await client.check({ limit: "hourly", key: "k" });
      expect(next.json.remaining).toBe(9);
      expect(next.localPort).toBe(localPort);
    },
  );

  it("is answered before the rest of it arrives", async () => {
    const socket = await openSocket({ port: served.port });
    socket.write("POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n");
    socket.write(body(70_000));
    const [head] = await new Promise<string[]>((resolve) => {
      socket.once("data", (chunk) => resolve(chunk.toString().split("\r\n")));
    });
    expect(head).toBe("HTTP/1.1 413 Payload Too Large");
    socket.destroy();
  });

  it("cuts the connection of a caller that never ends", async () => {
    const socket = await openSocket({ port: served.port });
    const closed = new Promise<void>((resolve) => {
      socket.once("close", () => resolve());
    });
    socket.on("error", () => {});
    socket.write("POST /v1/check HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    const chunk = `10000\r\n${"x".repeat(65_536)}\r\n`;
    let sent = 0;
    const pump = (): void => {
      while (!socket.destroyed && sent < 64) {
        sent += 1;
        if (!socket.write(chunk)) {
          socket.once("drain", pump);
          return;
        }
      }
    };
    pump();
    socket.resume();
    await closed;
    expect(decider.decided).toBe(0);
  });
});

describe("O24 different identities", () => {
  it.each([
    ["user=10.0.0.1", "ip=10.0.0.1"],
    ["a|b:c", "a:b|c"],
    ["a=b,c=", "a=b|c|"],
    ["x|y_z", "x_y|z"],
    ["v", "v\u0000"],
    ["é", "e\u0301"],
    ["K", "k"],
    ["k", "k "],
    ["1", "01"],
    ["__proto__", "constructor"],
  ])("%j and %j have buckets of their own", async (first, second) => {
    await client.check({ limit: "hourly", key: first, cost: 10 });
    expect(await spendOne(second)).toBe(9);
    expect((await client.check({ limit: "hourly", key: first })).json.allowed).toBe(false);
  });

  it.each(["*", "foo\r\nDEL canary\r\n", 'k\n{"level":"error"}'])(
    "%j is a key like any other and is not repeated in the answer",
    async (key) => {
      const { json, text } = await client.check({ limit: "hourly", key });
      expect(json.remaining).toBe(9);
      expect(text).not.toContain("canary");
    },
  );
});
