/**
 * Random headers and bodies on every route of a real sidecar, and requests that are none. Each is
 * answered, none with a fault, and the process stays as it was.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { FUZZ_TIMEOUT_MS, fuzzRuns } from "../support/fuzz-runs.ts";
import { type Sidecar, startSidecar, stopSidecars } from "../support/sidecar.ts";
import { openSocket, readToEnd } from "./http-client.ts";
import { KeptLine } from "./kept-line.ts";

vi.setConfig({ testTimeout: FUZZ_TIMEOUT_MS });

const DECISION_ROUTES = [
  "POST /v1/check",
  "GET /v1/check",
  "POST /v1/check/batch",
  "POST /v1/report",
  "GET /v1/limits",
  "GET /v1/limits/hourly",
  "GET /openapi.json",
  "POST /json",
  "GET /v1/forward",
  "POST /v1/forward/u/7",
  "HEAD /v1/forward/@users",
  "OPTIONS /v1/check",
  "PUT /nowhere",
];
const OPS_ROUTES = [
  "GET /",
  "HEAD /",
  "GET /livez",
  "GET /startupz",
  "GET /readyz",
  "GET /status",
  "GET /metrics",
  "POST /status",
  "OPTIONS /metrics",
];

const RULES = `
domain: d
descriptors:
  - { key: a, rate_limit: { unit: day, requests_per_unit: 1000000 } }
`;
const EXTRA = [
  "forward: { trusted_hops: 1 }",
  "policies:",
  "  - name: users",
  "    match: { methods: [GET, POST], path: [/u/:id/**, /:id] }",
  "    checks:",
  "      - { limit: hourly, key: [path:id, query:q, cookie:c, client-address, header:x-user] }",
];

const folder = mkdtempSync(join(tmpdir(), "aliquot-fuzz-"));
let sidecar: Sidecar;

beforeAll(async () => {
  writeFileSync(join(folder, "d.yaml"), RULES);
  sidecar = await startSidecar({
    limits: "  - { name: hourly, rate: 1/h, burst: 1000000 }",
    extra: [...EXTRA, `envoy: { domains: ["${folder}/d.yaml"] }`].join("\n"),
  });
});

afterAll(async () => {
  await stopSidecars();
  rmSync(folder, { recursive: true, force: true });
});

const NAMES = [
  "accept",
  "accept-encoding",
  "authorization",
  "content-type",
  "cookie",
  "forwarded",
  "host",
  "if-none-match",
  "origin",
  "range",
  "te",
  "traceparent",
  "x-forwarded-for",
  "x-forwarded-method",
  "x-forwarded-uri",
  "x-original-method",
  "x-original-uri",
  "x-ratelimit-deny-status",
  "x-user",
];
/** They tell where a request ends, or what becomes of the connection. */
const FRAMING = ["connection", "content-length", "expect", "transfer-encoding", "upgrade"];

const name = fc.oneof(
  fc.constantFrom(...NAMES),
  fc.stringMatching(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,20}$/).filter((each) => {
    return !FRAMING.includes(each.toLowerCase());
  }),
);
/** All that Node's parser lets through. */
const value = fc.oneof(
  fc.constantFrom("text/html", "application/json", "GET", "/u/7?q=1", "1.2.3.4, ::1", "a=1; c=2"),
  fc.uint8Array({ maxLength: 60 }).map((bytes) => {
    const latin1 = Buffer.from(bytes).toString("latin1");
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what a value cannot hold.
    return latin1.replace(/[\x00-\x08\x0a-\x1f\x7f]/g, "");
  }),
);
const lines = fc
  .array(
    fc.tuple(name, value).map((pair) => `${pair.join(": ")}\r\n`),
    { maxLength: 12 },
  )
  .map((all) => all.join(""));
const query = fc.oneof(fc.constant(""), fc.stringMatching(/^\?[!-~]{0,30}$/));
const bodies = fc.oneof(
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  fc.jsonValue().map((json) => Buffer.from(JSON.stringify(json))),
);

function requestOf(route: string, target: string, fields: string, body: Buffer): Buffer {
  const head = `${route}${target} HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n`;
  return Buffer.concat([Buffer.from(`${head}${fields}\r\n`, "latin1"), body]);
}

const ports = {
  decision: () => sidecar.httpPort,
  ops: () => sidecar.opsPort,
};
const ROUTES = [
  ...DECISION_ROUTES.map((route) => ["decision", route] as const),
  ...OPS_ROUTES.map((route) => ["ops", route] as const),
];

/** The process has met no fault of its own, and is there. */
async function expectWell(): Promise<void> {
  expect(await sidecar.probe("/livez")).toBe(200);
  expect(sidecar.output).not.toMatch(/"level":"?(error|fatal|50|60)/);
  expect((await sidecar.check("hourly", "witness", 0)).remaining).toBe(1_000_000);
}

describe("random headers and a random body", () => {
  it.each(ROUTES)("on the %s listener at %s are answered below 500", async (listener, route) => {
    const line = new KeptLine(ports[listener]());
    await fc.assert(
      fc.asyncProperty(query, lines, bodies, async (target, fields, body) => {
        const request = requestOf(route, target, fields, body);
        const { status } = await line.ask(request, route.startsWith("HEAD"));
        expect(status).toBeGreaterThanOrEqual(200);
        expect(status).toBeLessThan(500);
      }),
      { numRuns: fuzzRuns(40) },
    );
    line.close();
    await expectWell();
  });
});

describe("a request with bytes changed, put in or cut off", () => {
  const changes = fc.array(fc.tuple(fc.nat(), fc.uint8Array({ maxLength: 3 }), fc.boolean()), {
    maxLength: 4,
  });
  const framing = fc.oneof(
    fc.constantFrom("", "Transfer-Encoding: chunked\r\n", "Expect: 100-continue\r\n"),
    fc.constantFrom("Connection: upgrade\r\nUpgrade: h2c\r\n", "Content-Length: 9\r\n"),
  );

  it.each(["decision", "ops"] as const)("leaves the %s listener well", async (listener) => {
    const route = fc.constantFrom(...ROUTES.map(([, each]) => each));
    await fc.assert(
      fc.asyncProperty(
        fc.tuple(
          route,
          query,
          fc.tuple(framing, lines).map((all) => all.join("")),
          bodies,
        ),
        changes,
        async (parts, places) => {
          let bytes = requestOf(...parts);
          for (const [at, put, cuts] of places) {
            const place = at % (bytes.length + 1);
            const rest = bytes.subarray(place + (cuts ? put.length : 0));
            bytes = Buffer.concat([bytes.subarray(0, place), put, rest]);
          }
          const socket = await openSocket({ port: ports[listener]() });
          const text = readToEnd(socket).catch(() => "");
          socket.end(bytes);
          const statuses = [...(await text).matchAll(/HTTP\/1\.1 (\d{3})/g)];
          for (const [, status] of statuses) expect(Number(status)).toBeLessThan(500);
          if (statuses.length === 0) expect(await text).toBe("");
        },
      ),
      { numRuns: fuzzRuns(300) },
    );
    await expectWell();
  });
});
