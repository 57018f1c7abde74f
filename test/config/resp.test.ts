import { describe, expect, it } from "vitest";
import { allLimits } from "../../src/config/config.ts";
import { limitForKey } from "../../src/core/limit.ts";
import { shapePrefix } from "../../src/core/shaped-limits.ts";
import { configOf, minimal, problemsOf } from "./loading.ts";

const LISTEN = "listen: { resp: { socket: /run/r.sock } }";
const INLINE = "resp: { inline_limits: true }";

describe("the listener for the Redis protocol", () => {
  it("is off unless it is asked for", () => {
    expect(configOf(minimal()).listen.resp).toEqual({ socket: undefined, tcp: undefined });
    expect(configOf(minimal(LISTEN)).listen.resp.socket).toBe("/run/r.sock");
  });

  it("can be set from outside", () => {
    const flags = { "listen-resp-socket": "/run/f.sock" };
    const env = { ALIQUOT_LISTEN_RESP_TCP: "127.0.0.1:8793" };
    expect(configOf(minimal(), { flags, env }).listen.resp).toEqual({
      socket: "/run/f.sock",
      tcp: { host: "127.0.0.1", port: 8793 },
    });
  });

  it.each([
    ["{ resp: { tcp: 0.0.0.0:8793 } }", "listen.resp.tcp: can be reached from other machines"],
    ["{ resp: { tcp: 127.0.0.1:8790 } }", "listen.resp.tcp: needs another port than listen.http"],
    ["{ resp: { tcp: 127.0.0.1:8792 } }", "listen.resp.tcp: needs another port than listen.ops"],
    [
      "{ resp: { socket: /run/aliquot/grpc.sock } }",
      "listen.resp.socket: needs another path than listen.grpc.socket",
    ],
    ["{ resp: { socket: r.sock } }", "listen.resp.socket: must be an absolute path"],
    ["{ resp: { sockt: /r.sock } }", "listen.resp.sockt: unknown field; did you mean socket?"],
  ])("is refused as %s", (listen, problem) => {
    expect(problemsOf(minimal(`listen: ${listen}`)).join("\n")).toContain(problem);
  });
});

describe("limits that callers bring", () => {
  it("are not allowed unless the file says so", () => {
    expect(configOf(minimal(LISTEN)).resp.inlineLimit).toBeUndefined();
    expect(allLimits(configOf(minimal(LISTEN)))).toHaveLength(1);
  });

  it("are one limit to the engine, which each key shapes", () => {
    const text = minimal(LISTEN, INLINE, "fallback: { policy: closed }");
    const [, limit] = allLimits(configOf(text));
    expect(limit).toMatchObject({ name: "resp/inline", isAuto: true });
    if (limit === undefined) throw new Error("there is no inline limit");
    const shaped = limitForKey(limit, `${shapePrefix(30, 60, 16)}user:1`);
    expect(shaped).toMatchObject({ name: "resp/inline", rate: 0.5, burst: 16 });
    expect(shaped.fallback.policy).toBe("closed");
  });

  it("are enough for a file without limits of its own", () => {
    const lines = ["version: 1", LISTEN];
    expect(problemsOf([...lines, INLINE].join("\n"))).toEqual([]);
    expect(problemsOf(lines.join("\n")).join()).toContain("limits: is missing");
  });

  it("need a listener", () => {
    const problem = "resp.inline_limits: needs a listener; give listen.resp.socket a path";
    expect(problemsOf(minimal(INLINE)).join()).toContain(problem);
  });

  it.each([0, 1_001, "many"])("cannot be %s at most", (most) => {
    const text = minimal(LISTEN, `resp: { max_inline_limits: ${most} }`);
    const problem = "resp.max_inline_limits: must be a whole number from 1 to 1000";
    expect(problemsOf(text).join()).toContain(problem);
  });

  it("are part of the effective configuration and its hash", () => {
    const [plain, inline] = [configOf(minimal(LISTEN)), configOf(minimal(LISTEN, INLINE))];
    expect(inline.hash).not.toBe(plain.hash);
  });
});
