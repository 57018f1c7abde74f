import { renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { until } from "../../fleet/until.ts";
import { type Sidecar, startSidecar, stopSidecars } from "../support/sidecar.ts";
import {
  burstOf,
  configStatus,
  IN_FORCE_WITHIN_MS,
  logged,
  reloads,
  untilReloads,
} from "./reloading.ts";

const RELOADED = /^the configuration was reloaded$/;
const REFUSED = /^the configuration was refused/;

afterEach(stopSidecars);

function limit(name: string, burst: number): string {
  return `  - { name: ${name}, rate: 1/h, burst: ${burst} }`;
}

function rewrite(sidecar: Sidecar, ...limits: readonly string[]): void {
  writeFileSync(sidecar.config, sidecar.yaml({ limits: limits.join("\n") }));
}

describe("O14 a reload that changes nothing", () => {
  const RATE = 3;
  const REWRITES = 60;
  const OFFERED_EVERY_MS = 33;
  const a = `  - { name: a, rate: ${RATE}/s, burst: 60 }`;

  // The case's sixty tokens and sixty rewrites, in a third of its time.
  it("refills no bucket: a drained limit admits its rate through sixty reloads", async () => {
    const others = [limit("b", 10), limit("c", 10)];
    const sidecar = await startSidecar({ limits: [a, ...others].join("\n") });
    let drained = 0;
    while ((await sidecar.check("a", "k")).allowed) drained += 1;
    expect(drained).toBeGreaterThanOrEqual(60);
    const start = performance.now();
    let admitted = 0;
    let nextRewriteMs = 0;
    for (let rewrites = 0; rewrites < REWRITES; ) {
      const elapsedMs = performance.now() - start;
      if (elapsedMs >= nextRewriteMs) {
        rewrites += 1;
        nextRewriteMs += 1_000 / RATE;
        if (rewrites % 2 === 0) rewrite(sidecar, a, ...others, `  # ${rewrites}`);
        else rewrite(sidecar, a, limit("b", 10 + rewrites), limit("c", 10));
      }
      if ((await sidecar.check("a", "k")).allowed) admitted += 1;
      await new Promise((resolve) => setTimeout(resolve, OFFERED_EVERY_MS));
    }
    const seconds = (performance.now() - start) / 1_000;
    expect(admitted).toBeGreaterThanOrEqual(Math.floor(RATE * seconds) - 2);
    expect(admitted).toBeLessThanOrEqual(RATE * seconds + 2);
    await until("the last rewrite is in force", IN_FORCE_WITHIN_MS, async () => {
      return (await burstOf(sidecar, "b")) === 10;
    });
    const counted = await reloads(sidecar);
    expect(counted.failed).toBe(0);
    // Rewrites that came close together are one change; most are seen on their own.
    expect(counted.ok).toBeGreaterThan(REWRITES / 4);
    expect(counted.ok).toBeLessThanOrEqual(REWRITES);
  }, 120_000);

  it("enforces what was added, forgets what was removed, and keeps a balance", async () => {
    const kept = limit("a", 60);
    const sidecar = await startSidecar({ limits: `${kept}\n${limit("b", 5)}\n${limit("c", 5)}` });
    expect((await sidecar.check("a", "k", 23)).remaining).toBe(37);
    expect((await sidecar.check("b", "k", 1)).remaining).toBe(4);
    const before = await configStatus(sidecar);
    rewrite(sidecar, kept, limit("b", 10), limit("d", 2));
    await untilReloads(sidecar, { ok: 1 });

    expect(await burstOf(sidecar, "a", "k")).toBe(37);
    // Scaled with the burst: four fifths full before and after.
    expect(await burstOf(sidecar, "b", "k")).toBe(8);
    expect((await sidecar.ask("c", "k")).status).toBe(404);
    const verdicts = [];
    for (let i = 0; i < 5; i += 1) verdicts.push((await sidecar.check("d", "k")).allowed);
    expect(verdicts).toEqual([true, true, false, false, false]);

    const after = await configStatus(sidecar);
    expect(after.hash).not.toBe(before.hash);
    expect(after.loaded_at >= before.loaded_at).toBe(true);
    expect(after).toMatchObject({ reloads: { ok: 1, failed: 0 }, last_reload: { outcome: "ok" } });
    expect(await sidecar.metric(`aliquot_config_info{hash="${after.hash}"}`)).toBe(1);
    expect(await sidecar.sum("aliquot_config_info")).toBe(1);
    const [line, ...more] = logged(sidecar, RELOADED);
    expect(more).toEqual([]);
    expect(line).toMatchObject({
      level: "info",
      file: sidecar.config,
      added: ["d"],
      removed: ["c"],
      changed: ["b"],
    });
  });
});

const GOOD = "  - { name: l, rate: 2/h, burst: 2 }";
const BAD: readonly (readonly [string, (good: string) => string, RegExp])[] = [
  ["a misspelt field", (good) => good.replace("burst: 2", "burts: 10"), /limits\[0\].*burts/],
  ["a limit twice", (good) => good.replace(GOOD, `${GOOD}\n${GOOD}`), /limits\[1\]\.name/],
  ["a rate below zero", (good) => good.replace("2/h", "-5/s"), /limits\[0\]\.rate/],
  ["a file cut in half", (good) => good.slice(0, good.length / 2), /:\d+:\d+: /],
  ["an empty file", () => "", /empty/],
  ["a rate in words", (good) => good.replace("2/h", "ten"), /limits\[0\]\.rate/],
];

describe("O15 a bad configuration", () => {
  it("changes nothing, is counted, told once with file and place, and shown as refused", async () => {
    const sidecar = await startSidecar({ limits: GOOD });
    const good = sidecar.yaml();
    const { hash } = await configStatus(sidecar);
    for (const [index, [what, spoil, place]] of BAD.entries()) {
      const failed = index + 1;
      writeFileSync(sidecar.config, spoil(good));
      await untilReloads(sidecar, { failed });

      let allowed = 0;
      for (let i = 0; i < 20; i += 1) {
        if ((await sidecar.check("l", `key-${index}`)).allowed) allowed += 1;
      }
      expect(allowed, what).toBe(2);
      expect(await sidecar.metric("aliquot_config_last_reload_successful"), what).toBe(0);
      expect(await reloads(sidecar), what).toEqual({ ok: 0, failed });
      const lines = logged(sidecar, REFUSED);
      expect(lines.length, what).toBe(failed);
      const { level, problems } = lines.at(-1) as unknown as { level: string; problems: string[] };
      expect(level).toBe("error");
      expect(problems.join("\n"), what).toContain(sidecar.config);
      expect(problems.join("\n"), what).toMatch(place);
      const status = await configStatus(sidecar);
      expect(status.hash, what).toBe(hash);
      expect(status.last_reload.outcome, what).toBe("failed");
      expect(status.last_reload.problems?.[0]?.source, what).toBe(sidecar.config);
    }
    const refusedFor = await sidecar.metric("aliquot_config_last_success_timestamp_seconds");

    writeFileSync(sidecar.config, good);
    await untilReloads(sidecar, { ok: 1, failed: BAD.length });
    expect(await sidecar.metric("aliquot_config_last_reload_successful")).toBe(1);
    const last = await sidecar.metric("aliquot_config_last_success_timestamp_seconds");
    expect(last).toBeGreaterThan(refusedFor);
    const status = await configStatus(sidecar);
    expect(status).toMatchObject({ hash, last_reload: { outcome: "ok" } });
    expect(status.last_reload.problems).toBeUndefined();
    expect(sidecar.alive).toBe(true);
  }, 120_000);

  it.each(BAD)("stops a start with the same words: %s", async (_what, spoil, place) => {
    const sidecar = await startSidecar({
      limits: GOOD,
      unready: true,
      layOut: (text, folder) => {
        const path = join(folder, "config.yaml");
        writeFileSync(path, spoil(text));
        return path;
      },
    });
    expect((await sidecar.exited).code).toBe(2);
    expect(sidecar.output).toContain(sidecar.config);
    expect(sidecar.output).toMatch(place);
  });

  it("tells neither a value nor a secret in the status, which other pods may read", async () => {
    const sidecar = await startSidecar({ limits: GOOD });
    writeFileSync(sidecar.config, sidecar.yaml({ extra: "redis: { pasword: hunter2 }" }));
    await untilReloads(sidecar, { failed: 1 });
    expect(JSON.stringify(await sidecar.status())).not.toContain("hunter2");
  });
});

describe("the ways in which a file is replaced", () => {
  it("are all seen: written in place, renamed over, removed and made again", async () => {
    const sidecar = await startSidecar({ limits: limit("a", 5) });
    rewrite(sidecar, limit("a", 6));
    await untilReloads(sidecar, { ok: 1 });
    expect(await burstOf(sidecar, "a")).toBe(6);

    const beside = `${sidecar.config}.swp`;
    for (const burst of [7, 8]) {
      writeFileSync(beside, sidecar.yaml({ limits: limit("a", burst) }));
      renameSync(beside, sidecar.config);
      await untilReloads(sidecar, { ok: burst - 5 });
      expect(await burstOf(sidecar, "a")).toBe(burst);
    }

    rmSync(sidecar.config);
    rewrite(sidecar, limit("a", 9));
    await untilReloads(sidecar, { ok: 4 });
    expect(await burstOf(sidecar, "a")).toBe(9);
    expect(await reloads(sidecar)).toEqual({ ok: 4, failed: 0 });
  });

  it("may leave it missing for long: that is a failure, and the old limits hold", async () => {
    const sidecar = await startSidecar({ limits: limit("a", 5) });
    rmSync(sidecar.config);
    await untilReloads(sidecar, { failed: 1 });
    expect(logged(sidecar, REFUSED)).toHaveLength(1);
    expect(await burstOf(sidecar, "a")).toBe(5);
    rewrite(sidecar, limit("a", 6));
    await untilReloads(sidecar, { ok: 1, failed: 1 });
    expect(await burstOf(sidecar, "a")).toBe(6);
  });
});

describe("SIGHUP", () => {
  it("looks at the files, and says so when there is nothing to do", async () => {
    const sidecar = await startSidecar({ limits: limit("a", 5) });
    sidecar.signal("SIGHUP");
    await until("it has said so", IN_FORCE_WITHIN_MS, () => {
      return logged(sidecar, /^nothing to reload/).length === 1;
    });
    expect(await reloads(sidecar)).toEqual({ ok: 0, failed: 0 });
    rewrite(sidecar, limit("a", 6));
    sidecar.signal("SIGHUP");
    await untilReloads(sidecar, { ok: 1 });
    expect(await burstOf(sidecar, "a")).toBe(6);
    expect(await sidecar.terminate()).toEqual({ code: 0, signal: null });
  });
});

describe("what a reload puts in force besides limits", () => {
  it("is policies, header shapes and the log level", async () => {
    const policy = (name: string): string =>
      `policies: [{ name: p, checks: [{ limit: ${name}, key: "const:all" }] }]`;
    const sidecar = await startSidecar({ limits: limit("a", 5), extra: policy("a") });
    const before = await sidecar.forward("/v1/forward/@p");
    expect(before.headers).toMatchObject({ ratelimit: expect.stringContaining('"a"') });

    const extra = `${policy("b")}\nheaders: [x-delta]\nlog_level: error`;
    writeFileSync(sidecar.config, sidecar.yaml({ limits: limit("b", 7), extra }));
    await untilReloads(sidecar, { ok: 1 });
    const after = await sidecar.forward("/v1/forward/@p");
    expect(after.status).toBe(200);
    expect(after.headers).not.toHaveProperty("ratelimit");
    expect(after.headers["x-ratelimit-limit"]).toBe("7");
    // The line about it would be of a level that is no longer written.
    expect(logged(sidecar, RELOADED)).toEqual([]);
  });

  it("is not a listener, a store, a fleet: these wait for a restart and are told in one line", async () => {
    const sidecar = await startSidecar({ limits: limit("a", 5) });
    const { hash } = await configStatus(sidecar);
    const text = sidecar
      .yaml({ limits: limit("a", 6), extra: "keys_max: 77" })
      .replace(`127.0.0.1:${sidecar.httpPort}`, "127.0.0.1:1")
      .replace("fleet: test", "fleet: other");
    writeFileSync(sidecar.config, text);
    await untilReloads(sidecar, { ok: 1 });
    expect(await burstOf(sidecar, "a")).toBe(6);
    const waiting = ["fleet", "listen.http", "keys_max"];
    const status = await configStatus(sidecar);
    expect(status.needs_restart).toEqual(waiting);
    expect(status.hash).not.toBe(hash);
    const lines = logged(sidecar, /^needs a restart/);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ level: "warn", fields: waiting });

    writeFileSync(sidecar.config, sidecar.yaml());
    await untilReloads(sidecar, { ok: 2 });
    expect(await configStatus(sidecar)).toMatchObject({ hash, needs_restart: [] });
  });
});
