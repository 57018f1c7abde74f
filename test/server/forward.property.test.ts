import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { FUZZ_TIMEOUT_MS, fuzzRuns } from "../support/fuzz-runs.ts";
import { type Door, openDoor } from "./forward-door.ts";
import { openSocket, readToEnd } from "./http-client.ts";

vi.setConfig({ testTimeout: FUZZ_TIMEOUT_MS });

const YAML = [
  "limits:",
  "  - { name: hourly, rate: 1/h, burst: 1000000 }",
  "  - { name: small, rate: 1/h, burst: 1 }",
  "forward: { trusted_hops: 1 }",
  "policies:",
  "  - name: users",
  "    match: { methods: [GET, POST], path: [/u/:id/**, /:id] }",
  "    checks:",
  "      - { limit: hourly, key: [path:id, query:q, cookie:c, client-address, header:x-user] }",
  "      - { limit: small, key: header:x-user }",
  "  - { name: rest, match: { path: /r/** }, checks: [{ limit: hourly, key: query:q }] }",
];

/** Everything that a header line can hold once Node's parser has let it through. */
const headerValue = fc.string({ unit: "binary", maxLength: 60 }).map((text) =>
  Buffer.from(text)
    .toString("latin1")
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what a value cannot hold.
    .replace(/[\x00-\x08\x0a-\x1f\x7f]/g, ""),
);
const odd = fc.constantFrom("/", "//", "..", ".", "%2f", "%2E%2e", "%", "%zz", "\\", ";", "?", "#");
const target = fc
  .array(
    fc.oneof(odd, fc.constantFrom("u", "r", "a", "q=1", "&", "@users", "http://h"), headerValue),
  )
  .map((parts) => parts.join(""));

const NAMES = [
  "x-forwarded-method",
  "x-forwarded-uri",
  "x-original-method",
  "x-original-uri",
  "x-forwarded-for",
  "x-ratelimit-deny-status",
  "x-user",
  "cookie",
];
const address = fc.oneof(
  fc.ipV4(),
  fc.ipV6(),
  fc.ipV4().map((ip) => `[::ffff:${ip}]:1`),
);
const headers = fc.array(
  fc.tuple(
    fc.constantFrom(...NAMES),
    fc.oneof(headerValue, target, address, fc.constantFrom("GET", "403", "c=1; c=2", "a,,b")),
  ),
  { maxLength: 8 },
);
const methods = fc.constantFrom("GET", "HEAD", "POST", "OPTIONS", "DELETE", "PATCH", "TRACE");
const suffixes = fc.oneof(
  fc.constantFrom("", "/", "/@users", "/@rest", "/@*", "/@nobody", "/@", "?policy=users", "/@%2A"),
  fc.stringMatching(/^[!-~]{0,40}$/).map((text) => `/${text}`),
  fc.stringMatching(/^[!-~]{0,40}$/).map((text) => `/@users/${text}`),
);

/** Sends one request as raw bytes and gives its status; the connection is not used again. */
async function send(door: Door, head: readonly string[]): Promise<number> {
  const socket = await openSocket({ port: door.port });
  const answer = readToEnd(socket);
  socket.write(`${[...head, "Host: a", "Connection: close"].join("\r\n")}\r\n\r\n`, "latin1");
  return Number(/^HTTP\/1\.1 (\d{3})/.exec(await answer)?.[1]);
}

describe("any request to /v1/forward", () => {
  it("is answered below 500, and spends nothing when it is refused", async () => {
    const door = await openDoor(...YAML);
    const spent = (): number =>
      door.sole.engine
        .figures(0)
        .limits.reduce((sum, { tally }) => sum + (tally.tokens[0] ?? 0), 0);
    const seen = new Set<number>();
    await fc.assert(
      fc.asyncProperty(methods, suffixes, headers, async (method, suffix, lines) => {
        const before = spent();
        const fields = lines.map(([name, value]) => `${name}: ${value}`);
        const status = await send(door, [`${method} /v1/forward${suffix} HTTP/1.1`, ...fields]);
        seen.add(status);
        expect([200, 400, 401, 403, 404, 429]).toContain(status);
        if (status !== 200) expect(spent()).toBe(before);
      }),
      { numRuns: fuzzRuns(1_500) },
    );
    expect(seen).toContain(200);
    expect(seen).toContain(400);
    expect(seen).toContain(404);
  });
});
