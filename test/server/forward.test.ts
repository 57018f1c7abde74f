import { type IncomingHttpHeaders, request } from "node:http";
import { parseList } from "structured-headers";
import { describe, expect, it } from "vitest";
import { openDoor, remaining } from "./forward-door.ts";
import { openSocket, readToEnd } from "./http-client.ts";

const HOURLY = "limits: [{ name: hourly, rate: 1/h, burst: 3 }]";
const ALL = "policies: [{ name: all, checks: [{ limit: hourly, key: const:all }] }]";
const BY_KEY =
  "policies: [{ name: api, match: { path: /api/** }, " +
  "checks: [{ limit: hourly, key: header:x-key }] }]";

const LIMIT_EXCEEDED = "https://iana.org/assignments/http-problem-types#quota-exceeded";

const headerOf = (headers: IncomingHttpHeaders, name: string): string =>
  String(headers[name] ?? "");

describe("a forwarded request", () => {
  it("is answered with exactly 200 and nothing else when it may pass", async () => {
    const door = await openDoor(HOURLY, ALL);
    const { status, text, headers } = await door.ask("/v1/forward/@all");
    expect([status, text, headers["content-length"]]).toEqual([200, "", "0"]);
    expect(headers["ratelimit-policy"]).toBe('"hourly";q=3;w=10800');
    expect(headers["retry-after"]).toBeUndefined();
    const [[name, params] = []] = parseList(headerOf(headers, "ratelimit"));
    expect([name, (params as Map<string, unknown>).get("r")]).toEqual(["hourly", 2]);
  });

  it("is answered with 429, the wait and the limits that deny when it may not", async () => {
    const door = await openDoor(HOURLY, ALL);
    expect(await door.statuses(3, "/v1/forward/@all")).toEqual([200, 200, 200]);
    const { status, json, headers } = await door.ask("/v1/forward/@all");
    expect(status).toBe(429);
    expect(headers["content-type"]).toBe("application/problem+json");
    expect(headers["retry-after"]).toBe("3600");
    expect(headers["ratelimit-policy"]).toBe('"hourly";q=3;w=10800');
    expect(headerOf(headers, "ratelimit")).toBe('"hourly";r=0;t=3600');
    expect(headers["set-cookie"] ?? headers.location).toBeUndefined();
    expect(json).toMatchObject({
      type: LIMIT_EXCEEDED,
      status: 429,
      "violated-policies": ["hourly"],
    });
  });

  it.each(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"])(
    "O19 costs exactly one when it is a %s",
    async (method) => {
      const door = await openDoor(HOURLY, ALL);
      const first = await door.ask("/v1/forward/@all/x", {}, method);
      expect([first.status, remaining(first)]).toEqual([200, 2]);
      const second = await door.ask("/v1/forward/@all/x", {}, method);
      expect([second.status, remaining(second)]).toEqual([200, 1]);
      expect(second.localPort).toBe(first.localPort);
      await door.ask("/v1/forward/@all/x", {}, method);
      const denied = await door.ask("/v1/forward/@all/x", {}, method);
      expect([denied.status, denied.text === ""]).toEqual([429, method === "HEAD"]);
    },
  );

  it.each([401, 403, 429])("is denied with %d when the proxy asks for it", async (status) => {
    const door = await openDoor(HOURLY, ALL);
    const headers = { "x-ratelimit-deny-status": String(status) };
    expect(await door.statuses(4, "/v1/forward/@all", headers)).toEqual([200, 200, 200, status]);
  });

  it.each(["200", "204", "500", "429, 403", "", "abc"])(
    "spends nothing and is refused for the denial status %j",
    async (status) => {
      const door = await openDoor(HOURLY, ALL);
      const headers = { "x-ratelimit-deny-status": status };
      expect(await door.statuses(5, "/v1/forward/@all", headers)).toEqual([
        400, 400, 400, 400, 400,
      ]);
      expect(remaining(await door.ask("/v1/forward/@all"))).toBe(2);
    },
  );

  it("that names no policy that there is gets 404, which no proxy lets pass", async () => {
    const door = await openDoor(HOURLY, ALL);
    for (const path of ["/v1/forward/@alll", "/v1/forward/@", "/v1/forward/@alll/x?policy=all"]) {
      const { status, json } = await door.ask(path);
      expect(status).toBe(404);
      expect(json.detail).toContain('the closest one is "all"');
    }
    expect(remaining(await door.ask("/v1/forward/@all"))).toBe(2);
  });

  it("that falls under no policy passes, without headers, and is counted", async () => {
    const door = await openDoor(HOURLY, BY_KEY);
    const { status, headers } = await door.ask("/v1/forward/other");
    expect([status, headerOf(headers, "ratelimit")]).toEqual([200, ""]);
    expect(door.table.unmatched).toBe(1);
    expect(door.sole.engine.figures(0).trackedKeys).toBe(0);
  });

  it("is timed when it is decided", async () => {
    const door = await openDoor(HOURLY, BY_KEY);
    await door.ask("/v1/forward/api/x");
    await door.ask("/v1/forward/other");
    expect(door.durations).toHaveLength(1);
  });
});

describe("the original request", () => {
  const echo =
    "policies: [{ name: echo, match: { methods: [PATCH], path: /u/:id/** }, " +
    "checks: [{ limit: hourly, key: [path:id, query:q] }] }]";

  it.each([
    ["Traefik and Caddy", { "x-forwarded-method": "PATCH", "x-forwarded-uri": "/u/1/x?q=2" }, ""],
    ["nginx and HAProxy", { "x-original-method": "PATCH", "x-original-uri": "/u/1/x?q=2" }, ""],
    [
      "both, where the first counts",
      {
        "x-forwarded-method": "PATCH",
        "x-forwarded-uri": "/u/1/x?q=2",
        "x-original-method": "GET",
        "x-original-uri": "/",
      },
      "",
    ],
    ["a proxy that adds the client's query", { "x-original-uri": "/u/1/x?q=2" }, "?q=9&policy=x"],
    ["a whole URL", { "x-original-uri": "https://shop.example/u/1/x?q=2" }, ""],
    ["Envoy, which repeats it", {}, "/u/1/x?q=2"],
    ["an empty header", { "x-forwarded-uri": "" }, "/u/1/x?q=2"],
  ])("is told by %s", async (_, headers, suffix) => {
    const door = await openDoor(HOURLY, echo);
    expect((await door.ask(`/v1/forward${suffix}`, headers, "PATCH")).status).toBe(200);
    expect(door.table.unmatched).toBe(0);
    expect(door.sole.check(door.limit, 1, "list:1:1,1:2").remaining).toBe(1);
  });

  it("is what follows the name of the policy", async () => {
    const door = await openDoor(HOURLY, echo);
    await door.ask("/v1/forward/@echo/u/1/x?q=2");
    await door.ask("/v1/forward/@*/u/1/x?q=2", {}, "PATCH");
    expect(door.sole.check(door.limit, 1, "list:1:1,1:2").remaining).toBe(0);
  });

  it("is the root when nothing tells it", async () => {
    const door = await openDoor(
      HOURLY,
      "policies: [{ name: r, match: { path: / }, checks: [{ limit: hourly, key: query:q }] }]",
    );
    expect(remaining(await door.ask("/v1/forward"))).toBe(2);
    expect(remaining(await door.ask("/v1/forward/"))).toBe(1);
    expect(remaining(await door.ask("/v1/forward?q=1"))).toBe(2);
  });

  it("told twice by the same header is refused", async () => {
    const door = await openDoor(HOURLY, ALL);
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const headers = { "X-Original-URI": ["/a", "/b"] };
      request({ port: door.port, path: "/v1/forward/@all", headers }, (res) => {
        res.resume();
        resolve(res.statusCode);
      })
        .once("error", reject)
        .end();
    });
    expect(status).toBe(400);
    expect(remaining(await door.ask("/v1/forward/@all"))).toBe(2);
  });
});

describe("the policy", () => {
  it("cannot be changed by the query of the sub-request", async () => {
    const lax = "limits: [{ name: hourly, rate: 1/h, burst: 3 }, { name: lax, rate: 9/s }]";
    const door = await openDoor(
      lax,
      "policies:",
      "  - { name: lax, match: { path: /lax }, checks: [{ limit: lax, key: const:all }] }",
      "  - { name: all, checks: [{ limit: hourly, key: const:all }] }",
    );
    for (const query of ["?policy=lax", "?@lax", "?/@lax", "?x=/v1/forward/@lax"]) {
      const named = await door.ask(`/v1/forward/@all${query}`);
      expect(named.headers["ratelimit-policy"]).toContain("hourly");
      const first = await door.ask(`/v1/forward${query}`);
      expect(first.headers["ratelimit-policy"]).toContain("hourly");
    }
  });

  it("is not chosen by a path of the client that looks like a name after @*", async () => {
    const door = await openDoor(HOURLY, ALL);
    expect((await door.ask("/v1/forward/@*/@nobody/x")).status).toBe(200);
  });

  it("is part of the path, and /v1/forwarded is something else", async () => {
    const door = await openDoor(HOURLY, ALL);
    expect((await door.ask("/v1/forwarded")).status).toBe(404);
    expect((await door.ask("/v1/forward@all")).status).toBe(404);
  });
});

describe("a body of the sub-request", () => {
  it("is thrown away, and the connection stays usable", async () => {
    const door = await openDoor(HOURLY, ALL);
    const socket = await openSocket({ port: door.port });
    const head = "POST /v1/forward/@all HTTP/1.1\r\nHost: a\r\n";
    const body = "x".repeat(200_000);
    socket.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`);
    socket.write(`${head}Connection: close\r\nContent-Length: 2\r\n\r\n{}`);
    const text = await readToEnd(socket);
    expect(text.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(2);
    expect(text).toContain(";r=1;");
  });

  it("of more than a mebibyte ends the connection after the answer", async () => {
    const door = await openDoor(HOURLY, ALL);
    const socket = await openSocket({ port: door.port });
    const ended = readToEnd(socket).catch(() => "reset");
    socket.write("POST /v1/forward/@all HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    const chunk = `10000\r\n${"x".repeat(65_536)}\r\n`;
    for (let sent = 0; sent < 40 && socket.writable; sent += 1) socket.write(chunk);
    expect(await ended).toMatch(/200 OK|reset/);
    expect(remaining(await door.ask("/v1/forward/@all"))).toBe(1);
  });
});
