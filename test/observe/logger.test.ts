import { describe, expect, it } from "vitest";
import { createLogger, type LogLevel } from "../../src/observe/logger.ts";
import { StoreLog } from "../../src/observe/store-log.ts";

interface Line {
  readonly store?: unknown;
  readonly changes?: unknown;
}

/** A log whose lines are kept. */
function capture(level: LogLevel = "info"): {
  readonly log: ReturnType<typeof createLogger>;
  readonly raw: string[];
  readonly lines: () => Line[];
} {
  const raw: string[] = [];
  const log = createLogger({
    level,
    base: { pod: "pod-1" },
    destination: { write: (line) => raw.push(line) },
  });
  return { log, raw, lines: () => raw.map((line) => JSON.parse(line) as Line) };
}

describe("the log", () => {
  it("writes one JSON object a line with level, time and the fields of every line", () => {
    const { log, raw, lines } = capture();
    log.info({ limit: "api" }, "hello");
    expect(raw).toHaveLength(1);
    expect(raw[0]).toMatch(/^\{.*\}\n$/);
    expect(lines()).toEqual([
      { level: "info", time: expect.any(String), pod: "pod-1", limit: "api", msg: "hello" },
    ]);
    expect(raw[0]).toMatch(/"time":"\d{4}-\d\d-\d\dT[\d:.]+Z"/);
  });

  it("leaves out what is below its level", () => {
    const { log, raw } = capture("warn");
    log.info("no");
    log.warn("yes");
    expect(raw).toHaveLength(1);
  });

  it("hides passwords and the user part of URLs, down to the depth of a configuration", () => {
    const { log, raw, lines } = capture();
    const redis = {
      url: "redis://user:p4ss@redis:6379/0",
      urls: ["rediss://:p4ss@a:1", "redis://b:2"],
      password: "p4ss",
      tls: { password: "p4ss" },
    };
    log.info({ redis, config: { redis }, url: "redis://x:p4ss@y/", password: "p4ss" }, "config");
    expect(raw.join("")).not.toContain("p4ss");
    const shown = {
      url: "redis://[redacted]@redis:6379/0",
      urls: ["rediss://[redacted]@a:1", "redis://b:2"],
      password: "[redacted]",
      tls: { password: "[redacted]" },
    };
    expect(lines()[0]).toMatchObject({ redis: shown, config: { redis: shown } });
  });

  it("does not change what was logged", () => {
    const { log } = capture();
    const redis = { url: "redis://u:p@r", urls: ["redis://u:p@r"] };
    log.info({ redis }, "config");
    expect(redis).toEqual({ url: "redis://u:p@r", urls: ["redis://u:p@r"] });
  });

  it("writes an error with its cause", () => {
    const { log, lines } = capture();
    log.error({ err: new Error("outer", { cause: new Error("inner") }) }, "failed");
    expect(JSON.stringify(lines()[0])).toMatch(/outer.*inner/s);
  });
});

describe("O24 text from callers in the log", () => {
  it.each([
    'k\n{"level":"error"}',
    "foo\r\nDEL canary\r\n",
    "\u001b[31mred\u001b[0m",
    "\u009b31m",
    "\u007f\u0085",
    "a\u2028b\u2029c",
    "v\u0000",
  ])("%j stays on its line, with control characters escaped, and can be read back", (key) => {
    const { log, raw, lines } = capture();
    log.warn({ key }, `odd key ${key}`);
    expect(raw).toHaveLength(1);
    expect(raw[0]?.slice(0, -1)).not.toMatch(/[\p{Cc}\u2028\u2029]/u);
    expect(lines()).toMatchObject([{ key, msg: `odd key ${key}` }]);
  });
});

describe("the store in the log", () => {
  const SECOND = 1_000_000;

  it("is mentioned once per change, however often it is told", () => {
    const { log, lines } = capture();
    const store = new StoreLog(log);
    for (let i = 0; i < 50; i += 1) store.observe(i * 100_000, "up");
    expect(lines()).toEqual([]);
    for (let i = 0; i < 50; i += 1) {
      store.observe(10 * SECOND + i * 100_000, "unreachable", "ECONNREFUSED");
    }
    for (let i = 0; i < 50; i += 1) store.observe(20 * SECOND + i * 100_000, "up");
    expect(lines()).toMatchObject([
      { level: "warn", store: "unreachable", detail: "ECONNREFUSED", changes: 1 },
      { level: "info", store: "up", changes: 1 },
    ]);
  });

  it("tells one further reason of the same outage, once", () => {
    const { log, lines } = capture();
    const store = new StoreLog(log);
    const reasons = ["the connection was lost", "soon over", "soon over"];
    const later = ["WRONGPASS", "the connection was lost", "a third"];
    for (const [second, reason] of [...reasons, ...later, ...later].entries()) {
      store.observe(second * SECOND, "unreachable", reason);
    }
    expect(lines()).toMatchObject([
      { store: "unreachable", detail: "the connection was lost" },
      { store: "unreachable", detail: "WRONGPASS" },
    ]);
  });

  it("is mentioned at most once a second while it flaps, and ends with its last state", () => {
    const { log, lines } = capture();
    const store = new StoreLog(log);
    for (let ms = 0; ms < 10_000; ms += 10) {
      store.observe(ms * 1_000, ms % 70 < 40 ? "timeout" : "up");
    }
    for (let ms = 10_000; ms < 12_000; ms += 100) store.observe(ms * 1_000, "malformed");
    expect(lines().length).toBeLessThanOrEqual(12);
    expect(lines().length).toBeGreaterThan(5);
    expect(lines().at(-1)).toMatchObject({ store: "malformed" });
    const changes = lines().map((line) => Number(line.changes));
    expect(Math.max(...changes)).toBeGreaterThan(20);
  });
});
