import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../fleet/until.ts";
import { type Sidecar, startSidecar, stopSidecars } from "../support/sidecar.ts";
import { ConfigMap } from "./config-map.ts";
import {
  burstOf,
  configStatus,
  IN_FORCE_WITHIN_MS,
  logged,
  reloads,
  untilReloads,
} from "./reloading.ts";

const SWAPS = 100;
/** One of so many swaps brings a broken file as well, before the good one. */
const BROKEN_EVERY = 20;
/** What is promised; a machine with other work may be late with a few. */
const PROMISED_MS = 2_000;
/** Between two requests of one caller, so that the load does not take the machine. */
const PAUSE_MS = 3;
const SAME_TIME = new Date("2026-01-01T00:00:00Z");
const FILE = "aliquot.yaml";

let folder: string;
let mount: ConfigMap;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "aliquot-config-map-"));
  mount = new ConfigMap(folder);
});

afterEach(async () => {
  await stopSidecars();
  rmSync(folder, { recursive: true, force: true });
});

/** A sidecar whose configuration, and what else there is, is mounted. */
async function startMounted(
  limits: string,
  extra = "",
  files: Readonly<Record<string, string>> = {},
): Promise<Sidecar> {
  return startSidecar({
    limits,
    extra,
    layOut: (text) => {
      mount.swap({ [FILE]: text, ...files }, SAME_TIME);
      return mount.path(FILE);
    },
  });
}

function bursting(burst: number): string {
  return `  - { name: api, rate: 1/h, burst: ${burst} }`;
}

describe("O16 a ConfigMap that is updated", () => {
  it("takes effect ten times in a row, also with files of the same size and time", async () => {
    const sidecar = await startMounted(bursting(5));
    expect(await burstOf(sidecar, "api")).toBe(5);
    const size = statSync(mount.path(FILE)).size;
    for (let swap = 1; swap <= 10; swap += 1) {
      const isAlike = swap <= 3;
      const burst = isAlike ? 5 + swap : 100 + swap;
      mount.swap(
        { [FILE]: sidecar.yaml({ limits: bursting(burst) }) },
        isAlike ? SAME_TIME : undefined,
      );
      if (isAlike) expect(statSync(mount.path(FILE))).toMatchObject({ size, mtime: SAME_TIME });
      await until(`swap ${swap} is in force`, IN_FORCE_WITHIN_MS, async () => {
        return (await burstOf(sidecar, "api", `fresh-${swap}`)) === burst;
      });
    }
    await sidecar.terminate();
    expect(logged(sidecar, /^the configuration was reloaded$/)).toHaveLength(10);
    // Nothing else was worth a word: no vanished folder, no failure.
    expect(logged(sidecar, /./)).toHaveLength(10);
  }, 120_000);

  it("is counted once for each update", async () => {
    const sidecar = await startMounted(bursting(5));
    for (let swap = 1; swap <= 10; swap += 1) {
      mount.swap({ [FILE]: sidecar.yaml({ limits: bursting(5 + swap) }) });
      await untilReloads(sidecar, { ok: swap });
    }
    // The same bytes in another folder are no update.
    mount.swap({ [FILE]: sidecar.yaml({ limits: bursting(15) }) });
    sidecar.signal("SIGHUP");
    await until("it has looked", IN_FORCE_WITHIN_MS, () => {
      return logged(sidecar, /^nothing to reload/).length === 1;
    });
    expect(await reloads(sidecar)).toEqual({ ok: 10, failed: 0 });
  }, 120_000);

  it(`fails no check, mixes no two states and refills no bucket: ${SWAPS} swaps under load`, async () => {
    // Each state has a limit of its own, which its policy names, beside one that stays.
    const limits = (swap: number): string =>
      `${bursting(1_000_000)}\n  - { name: only-${swap}, rate: 1/h, burst: 9 }`;
    const policy = (swap: number): string =>
      `policies: [{ name: p, checks: [{ limit: only-${swap}, key: "const:all" }] }]`;
    const sidecar = await startMounted(limits(0), policy(0));
    const load = new MountedLoad(sidecar);
    const tookMs: number[] = [];
    let broken = 0;
    try {
      for (let swap = 1; swap <= SWAPS; swap += 1) {
        const text = sidecar.yaml({ limits: limits(swap), extra: policy(swap) });
        if (swap % BROKEN_EVERY === 0) {
          broken += 1;
          await expectRefused(sidecar, text.replace("1/h", "once"), { ok: swap - 1, broken });
        }
        const start = performance.now();
        mount.swap({ [FILE]: text });
        await until(`swap ${swap} is in force`, IN_FORCE_WITHIN_MS, async () => {
          return (await sidecar.ask(`only-${swap}`, "k", 0)).status === 200;
        });
        tookMs.push(performance.now() - start);
      }
    } finally {
      await load.stop();
    }
    expect(tookMs.filter((ms) => ms <= PROMISED_MS).length).toBeGreaterThanOrEqual(0.95 * SWAPS);
    // A denial is 429 to a proxy; anything else would be a request that met a half-done switch.
    const odd = [...load.statuses.keys()].filter((kind) => {
      return !/check 200|forward (200|429)/.test(kind);
    });
    expect(odd).toEqual([]);
    expect(load.checks).toBeGreaterThan(SWAPS);
    expect(await reloads(sidecar)).toEqual({ ok: SWAPS, failed: broken });
    // No bucket was refilled: what was admitted is still missing.
    expect(await burstOf(sidecar, "api", "k")).toBe(1_000_000 - load.checks);
  }, 240_000);
});

/** A broken file is mounted: it is counted, and everything else stays as it was. */
async function expectRefused(
  sidecar: Sidecar,
  text: string,
  counted: { readonly ok: number; readonly broken: number },
): Promise<void> {
  const before = await configStatus(sidecar);
  const since = await sidecar.metric("aliquot_config_last_success_timestamp_seconds");
  mount.swap({ [FILE]: text });
  await untilReloads(sidecar, { ok: counted.ok, failed: counted.broken });
  const after = await configStatus(sidecar);
  expect(after.hash).toBe(before.hash);
  expect(after.last_reload.outcome).toBe("failed");
  expect(await sidecar.metric("aliquot_config_last_reload_successful")).toBe(0);
  expect(await sidecar.metric("aliquot_config_last_success_timestamp_seconds")).toBe(since);
  expect((await sidecar.ask(`only-${counted.ok}`, "k", 0)).status).toBe(200);
}

/** Four callers that ask and forward until they are stopped. */
class MountedLoad {
  readonly statuses = new Map<string, number>();
  checks = 0;
  private isOver = false;
  private readonly callers: Promise<unknown>;

  constructor(sidecar: Sidecar) {
    this.callers = Promise.all(Array.from({ length: 4 }, () => this.ask(sidecar)));
  }

  async stop(): Promise<void> {
    this.isOver = true;
    await this.callers;
  }

  private async ask(sidecar: Sidecar): Promise<void> {
    while (!this.isOver) {
      const [check, forward] = await Promise.all([
        sidecar.ask("api", "k"),
        sidecar.forward("/v1/forward/@p"),
      ]);
      this.checks += 1;
      this.note("check", check.status);
      this.note("forward", forward.status);
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }

  private note(kind: string, status: number): void {
    this.statuses.set(`${kind} ${status}`, (this.statuses.get(`${kind} ${status}`) ?? 0) + 1);
  }
}

describe("files of rules for Envoy that change", () => {
  const rules = (limit: number): string =>
    `domain: shop\ndescriptors:\n  - key: user\n    rate_limit: { unit: hour, requests_per_unit: ${limit} }\n`;
  const extra = "envoy: { domains: ['./rules/*.yaml'] }";

  it("are put in force as the configuration is, and change nothing when they are broken", async () => {
    const sidecar = await startMounted(bursting(5), extra, { "rules/shop.yaml": rules(7) });
    const text = sidecar.yaml();
    const name = "envoy/shop/user";
    expect(await burstOf(sidecar, name)).toBe(7);
    const { hash } = await configStatus(sidecar);

    mount.swap({ [FILE]: text, "rules/shop.yaml": rules(8) });
    await untilReloads(sidecar, { ok: 1 });
    expect(await burstOf(sidecar, name)).toBe(8);
    const after = await configStatus(sidecar);
    expect(after.hash).not.toBe(hash);

    mount.swap({ [FILE]: text, "rules/shop.yaml": rules(9).replace("hour", "fortnight") });
    await untilReloads(sidecar, { ok: 1, failed: 1 });
    expect(await burstOf(sidecar, name)).toBe(8);
    expect((await configStatus(sidecar)).hash).toBe(after.hash);
    const [line] = logged(sidecar, /^the configuration was refused/);
    expect(JSON.stringify(line)).toContain(`${mount.path("rules/shop.yaml")}:4:`);
    expect(JSON.stringify(line)).toContain("fortnight");

    mount.swap({ [FILE]: text, "rules/shop.yaml": rules(9), "rules/more.yaml": "domain: more\n" });
    await untilReloads(sidecar, { ok: 2, failed: 1 });
    expect(await burstOf(sidecar, name)).toBe(9);
  });
});
