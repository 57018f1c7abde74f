/** Watching real folders, without a daemon around it: what events, half-done writes and ends do. */
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../fleet/until.ts";
import { ConfigReader, type Reading } from "../../src/config/reading.ts";
import { ConfigWatch } from "../../src/runtime/config-watch.ts";
import { SystemClock } from "../../src/runtime/system-clock.ts";

/** Shorter than the time after which it looks again without an event. */
const SEEN_WITHIN_MS = 5_000;

let folder: string;
let watches: ConfigWatch<Reading>[];
let changes: string[];
let same: number;
let looks: number;
let faults: unknown[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "aliquot-watch-"));
  watches = [];
  changes = [];
  same = 0;
  looks = 0;
  faults = [];
});

afterEach(() => {
  for (const watch of watches) watch.stop();
  rmSync(folder, { recursive: true, force: true });
  expect(faults).toEqual([]);
});

function file(burst: number, ...lines: readonly string[]): string {
  const limit = `  - { name: a, rate: 1/h, burst: ${burst} }`;
  return ["version: 1", "limits:", limit, ...lines, ""].join("\n");
}

/** @param change - How a look is passed on; by default as it is. */
async function watch(path: string, change = (look: Reading): Reading => look): Promise<void> {
  const reader = new ConfigReader({ path, env: {}, flags: {}, hostname: "host" });
  const { fingerprint } = await reader.read();
  const subject = {
    look: async () => {
      looks += 1;
      return change(await reader.read());
    },
    isUsable: (look: Reading) => look.load().config !== undefined,
    changed: (look: Reading) => {
      const { config } = look.load();
      changes.push(config === undefined ? "bad" : String(config.limits[0]?.burst));
    },
    same: () => {
      same += 1;
    },
  };
  const started = new ConfigWatch({
    clock: new SystemClock(),
    subject,
    known: fingerprint,
    log: { warn: () => {} },
    onFault: (error) => faults.push(error),
  });
  watches.push(started);
  started.start();
  await until("it has looked", SEEN_WITHIN_MS, () => looks > 1);
}

async function untilChanges(...wanted: readonly string[]): Promise<void> {
  await until(`changes are ${wanted}`, SEEN_WITHIN_MS, () => changes.length >= wanted.length);
  expect(changes).toEqual(wanted);
}

describe("a watched configuration", () => {
  it("is not told while it is being written, only when it is whole", async () => {
    const path = join(folder, "a.yaml");
    writeFileSync(path, file(1));
    await watch(path);
    const whole = file(2, "log_level: error", "keys_max: 5000");
    writeFileSync(path, "");
    // Slower than any editor, and each part of it is another state of the file.
    for (let at = 0; at < whole.length; at += 10) {
      appendFileSync(path, whole.slice(at, at + 10));
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
    await untilChanges("2");
  });

  it("is seen behind a link that leads to another folder", async () => {
    const elsewhere = join(folder, "elsewhere");
    const mount = join(folder, "mount");
    mkdirSync(elsewhere);
    mkdirSync(mount);
    writeFileSync(join(elsewhere, "a.yaml"), file(1));
    symlinkSync(join(elsewhere, "a.yaml"), join(mount, "a.yaml"));
    await watch(join(mount, "a.yaml"));
    writeFileSync(join(elsewhere, "a.yaml"), file(2));
    await untilChanges("2");
  });

  it("is seen again when its whole folder was removed and made anew, twice", async () => {
    const inner = join(folder, "inner");
    const path = join(inner, "a.yaml");
    mkdirSync(inner);
    writeFileSync(path, file(1));
    await watch(path);
    rmSync(inner, { recursive: true });
    await untilChanges("bad");
    mkdirSync(inner);
    writeFileSync(path, file(2));
    await untilChanges("bad", "2");
    writeFileSync(path, file(3));
    await untilChanges("bad", "2", "3");
  });

  it("includes rule files that come later, in a folder that comes later", async () => {
    const path = join(folder, "a.yaml");
    writeFileSync(path, file(1, 'envoy: { domains: ["./rules/*.yaml"] }'));
    await watch(path);
    mkdirSync(join(folder, "rules"));
    const rule = "descriptors: [{ key: k, rate_limit: { unit: hour, requests_per_unit: 5 } }]";
    writeFileSync(join(folder, "rules", "d.yaml"), `domain: d\n${rule}\n`);
    await until("it is usable", SEEN_WITHIN_MS, () => changes.at(-1) === "1");
    writeFileSync(join(folder, "rules", "e.yaml"), "domain: e\n");
    await until("the next file is seen", SEEN_WITHIN_MS, () => changes.length > 1);
  });

  it("is looked at when somebody asks, also where no folder can be watched", async () => {
    const path = join(folder, "a.yaml");
    writeFileSync(path, file(1));
    await watch(path, (look) => ({ ...look, folders: [join(folder, "nowhere")] }));
    watches[0]?.ask();
    await until("the answer is there", SEEN_WITHIN_MS, () => same === 1);
    writeFileSync(path, file(2));
    watches[0]?.ask();
    await untilChanges("2");
    expect(same).toBe(1);
  });

  it("tells nothing after the end", async () => {
    const path = join(folder, "a.yaml");
    writeFileSync(path, file(1));
    await watch(path);
    const before = looks;
    writeFileSync(path, file(2));
    await until("a look has begun", SEEN_WITHIN_MS, () => looks > before);
    watches[0]?.stop();
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(changes).toEqual([]);
  });

  it("is left alone by events that never end in its folder", async () => {
    const path = join(folder, "a.yaml");
    writeFileSync(path, file(1));
    await watch(path);
    const noise = setInterval(() => appendFileSync(join(folder, "access.log"), "x\n"), 5);
    try {
      writeFileSync(path, file(2));
      await untilChanges("2");
    } finally {
      clearInterval(noise);
    }
  });
});
