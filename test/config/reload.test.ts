import { describe, expect, it } from "vitest";
import type { Config } from "../../src/config/config.ts";
import { loadConfig } from "../../src/config/load.ts";
import { ConfigReader, type Reading } from "../../src/config/reading.ts";
import { LiveConfig } from "../../src/config/reload.ts";
import { configOf, minimal } from "./loading.ts";

type Told = readonly [level: string, fields: object, message: string];

/** A running configuration, what was put in force after it, and what the log got. */
function running(text: string) {
  const inForce: Config[] = [];
  const told: Told[] = [];
  const note = (level: string) => (fields: object, message: string) => {
    told.push([level, fields, message]);
  };
  let nowMs = 1_000_000;
  const live = new LiveConfig({
    first: configOf(text),
    reader: new ConfigReader({ path: "a.yaml", env: {}, flags: {}, hostname: "host-1" }),
    putInForce: (config) => inForce.push(config),
    log: { info: note("info"), warn: note("warn"), error: note("error") },
    wallMs: () => {
      nowMs += 1_000;
      return nowMs;
    },
  });
  const change = (loaded: ReturnType<Reading["load"]>): void => {
    const texts = { file: { text: "" }, domainFiles: [] };
    live.changed({ fingerprint: "", folders: [], texts, load: () => loaded });
  };
  return {
    live,
    inForce,
    told,
    changeTo: (other: string) => change({ config: configOf(other) }),
    changeToBad: (text: string) =>
      change(loadConfig({ file: { path: "a.yaml", text }, env: {}, flags: {}, hostname: "h" })),
  };
}

describe("the configuration in force", () => {
  it("changes as a whole, and its time with it", () => {
    const { live, inForce, changeTo } = running(minimal());
    const before = live.standing();
    expect(before).toMatchObject({ lastReload: "none", lastReloadOk: true, problems: [] });
    changeTo(minimal("headers: [draft-03]", "log_level: debug", "drain_timeout: 3s"));
    expect(inForce).toEqual([live.config]);
    expect(live.config).toMatchObject({ headers: ["draft-03"], logLevel: "debug" });
    expect(live.config.drainTimeoutUs).toBe(3_000_000);
    const after = live.standing();
    expect(after).toMatchObject({ lastReload: "ok", reloadsOk: 1, reloadsFailed: 0 });
    expect(after.hash).not.toBe(before.hash);
    expect(after.inForceSinceSeconds).toBeGreaterThan(before.inForceSinceSeconds);
  });

  it("stays what it is when only a comment changed, which counts as a success", () => {
    const { live, inForce, changeTo } = running(minimal());
    const before = live.standing();
    changeTo(minimal("# a comment"));
    expect(inForce).toEqual([]);
    const after = live.standing();
    expect(after).toMatchObject({ hash: before.hash, reloadsOk: 1 });
    expect(after.inForceSinceSeconds).toBe(before.inForceSinceSeconds);
    expect(after.lastSuccessSeconds).toBeGreaterThan(before.lastSuccessSeconds);
  });

  it("stays what it is when the file is bad, until a good one comes", () => {
    const { live, inForce, told, changeTo, changeToBad } = running(minimal());
    const before = live.standing();
    changeToBad(minimal("headrs: [ietf]"));
    const refused = live.standing();
    expect(inForce).toEqual([]);
    expect(refused).toMatchObject({
      hash: before.hash,
      lastSuccessSeconds: before.lastSuccessSeconds,
      lastReload: "failed",
      lastReloadOk: false,
      reloadsOk: 0,
      reloadsFailed: 1,
      problems: [{ field: "headrs" }],
    });
    expect(told.map(([level]) => level)).toEqual(["error"]);
    changeTo(minimal());
    expect(live.standing()).toMatchObject({ lastReload: "ok", reloadsOk: 1, problems: [] });
  });

  it("tells of a very bad file in one line of bounded length", () => {
    const { live, told, changeToBad } = running(minimal());
    changeToBad(minimal(...Array.from({ length: 50 }, (_, index) => `wrong_${index}: 1`)));
    expect(told).toHaveLength(1);
    const [, fields] = told[0] as Told;
    expect(fields).toMatchObject({ more: 40 });
    expect((fields as { problems: string[] }).problems).toHaveLength(10);
    expect(live.standing().problems).toHaveLength(10);
  });
});

describe("what needs a restart", () => {
  const redis = "redis: { url: 'redis://r:6379' }";
  const base = ["fleet: f", redis];

  it.each([
    ["fleet", ["fleet: g", redis]],
    ["listen.http", [...base, "listen: { http: { tcp: '127.0.0.1:1' } }"]],
    ["listen.grpc", [...base, "listen: { grpc: { tcp: '127.0.0.1:1' } }"]],
    ["listen.ops", [...base, "listen: { ops: '127.0.0.1:1' }"]],
    ["listen.socket_mode", [...base, "listen: { socket_mode: '0600' }"]],
    ["redis", ["fleet: f", "redis: { url: 'redis://s:6379' }"]],
    ["membership", [...base, "membership: { timeout: 9s }"]],
    ["decision_timeout", [...base, "decision_timeout: 9ms"]],
    ["keys_max", [...base, "keys_max: 5000"]],
  ])("is %s: it is told, and what can change does", (field, lines) => {
    const { live, told, changeTo } = running(minimal(...base));
    const before = live.config;
    changeTo(minimal(...lines, "headers: [x-delta]"));
    expect(live.standing().needsRestart).toEqual([field]);
    expect(told.filter(([level]) => level === "warn")).toHaveLength(1);
    const { headers: _old, hash: _before, ...kept } = before;
    expect(live.config).toMatchObject(kept);
    expect(live.config.headers).toEqual(["x-delta"]);
    changeTo(minimal(...base));
    expect(live.standing()).toMatchObject({ needsRestart: [], hash: before.hash });
  });

  it("is told even when nothing else changes, and the hash stays that of what runs", () => {
    const { live, inForce, changeTo } = running(minimal(...base));
    const { hash } = live.standing();
    changeTo(minimal(...base, "keys_max: 5000"));
    expect(inForce).toEqual([]);
    expect(live.standing()).toMatchObject({ hash, needsRestart: ["keys_max"] });
  });
});
