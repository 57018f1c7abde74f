import { existsSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { until } from "../../fleet/until.ts";
import { type Sidecar, startSidecar, stopSidecars } from "../support/sidecar.ts";
import { offer } from "./load.ts";
import { askAnew, isAlive, workersOf } from "./workers.ts";

const WORKERS = 3;
const LIMITS = [
  "  - { name: api, rate: 100/s, burst: 100, mode: hybrid }",
  "  - { name: much, rate: 1000000/s, burst: 1000000 }",
].join("\n");

/** Where it does not matter how many there are. */
const TWO = { extra: "workers: 2" };

afterEach(stopSidecars);

const start = (rest: Partial<Parameters<typeof startSidecar>[0]> = {}): Promise<Sidecar> =>
  startSidecar({ limits: LIMITS, extra: `workers: ${WORKERS}`, ...rest });

const decisions = (sidecar: Sidecar, limit: string): Promise<number> =>
  sidecar.sum("aliquot_decisions_total", `limit="${limit}"`);

describe("several workers without Redis", () => {
  it("admit together what one bucket admits, and their metrics are what callers counted", async () => {
    const sidecar = await start();
    const seconds = 3;
    const began = performance.now();
    const load = { sidecar, limit: "api", key: "k", perSecond: 300 };
    const { allowed, denied, failed } = await offer(load, seconds * 1_000);
    const tookSeconds = (performance.now() - began) / 1_000;
    expect(failed).toBe(0);
    const status = (await sidecar.status()) as { limits: { over_admission_bound: number }[] };
    const bound = status.limits[0]?.over_admission_bound ?? Number.NaN;
    expect(allowed).toBeLessThanOrEqual(100 + 100 * tookSeconds + bound);
    expect(allowed).toBeGreaterThan(0.6 * (100 + 100 * seconds));
    const metrics = await sidecar.metrics();
    const sum = (outcome: string): number =>
      [...metrics].reduce((total, [name, value]) => {
        const isOne = name.startsWith(`aliquot_decisions_total{limit="api",outcome="${outcome}"`);
        return isOne ? total + value : total;
      }, 0);
    expect([sum("allowed"), sum("denied")]).toEqual([allowed, denied]);
    const observed = 'aliquot_decision_duration_seconds_count{transport="http"}';
    expect(metrics.get(observed)).toBe(allowed + denied);
    expect(metrics.get("aliquot_live_pods")).toBe(1);
    expect(metrics.get("aliquot_workers_up")).toBe(WORKERS);
    // 64 connections came in, and went round.
    expect(metrics.get("process_cpu_seconds_total")).toBeGreaterThan(0);
    expect(await sidecar.probe("/startupz")).toBe(200);
  });

  it("replace one that is killed, and callers are answered meanwhile", async () => {
    const sidecar = await start();
    for (let i = 0; i < 30; i += 1) await askAnew(sidecar, "/v1/check?limit=much&key=k");
    const before = await decisions(sidecar, "much");
    expect(before).toBe(30);
    const [victim = 0] = workersOf(sidecar.pid);
    process.kill(victim, "SIGKILL");
    // A connection that was given to the victim in the moment of its death may be lost with it.
    let lost = 0;
    for (let i = 0; i < 30; i += 1) {
      const status = await askAnew(sidecar, "/v1/check?limit=much&key=k").then(
        (reply) => reply.status,
        () => 0,
      );
      if (status !== 200) lost += 1;
    }
    expect(lost).toBeLessThanOrEqual(1);
    await until("three workers are up", 20_000, async () => {
      return (await sidecar.metric("aliquot_workers_up")) === WORKERS;
    });
    expect(await sidecar.metric("aliquot_worker_restarts_total")).toBe(1);
    // Nothing is counted back: what the victim had told still counts.
    expect(await decisions(sidecar, "much")).toBe(before + 30 - lost);
    expect(workersOf(sidecar.pid)).not.toContain(victim);
    expect(sidecar.output).toContain("a worker died and is replaced");
    expect(await sidecar.probe("/readyz")).toBe(200);
  });

  it("are replaced when all are killed at once, on the same socket", async () => {
    const sidecar = await start();
    for (const pid of workersOf(sidecar.pid)) process.kill(pid, "SIGKILL");
    await until("none is left", 5_000, async () => (await sidecar.probe("/readyz")) === 503);
    expect(await sidecar.probe("/livez")).toBe(200);
    await sidecar.ready();
    expect((await askAnew(sidecar, "/v1/check?limit=much&key=k")).status).toBe(200);
    expect(statSync(sidecar.socket).mode & 0o777).toBe(0o660);
    expect(await sidecar.terminate()).toEqual({ code: 0, signal: null });
    expect(readdirSync(dirname(sidecar.socket))).toEqual(["config.yaml"]);
  });

  it("all follow a changed file, also one that takes its place later", async () => {
    const sidecar = await start();
    const bursts = async (): Promise<Set<unknown>> => {
      const seen = new Set<unknown>();
      for (let i = 0; i < 2 * WORKERS; i += 1) {
        const { body } = await askAnew(sidecar, "/v1/limits/api");
        seen.add((JSON.parse(body) as { burst: number }).burst);
      }
      return seen;
    };
    expect(await bursts()).toEqual(new Set([100]));
    writeFileSync(
      sidecar.config,
      sidecar.yaml({ limits: LIMITS.replace("burst: 100,", "burst: 70,") }),
    );
    sidecar.signal("SIGHUP");
    await until("all have it", 10_000, async () => {
      const seen = await bursts();
      return seen.size === 1 && seen.has(70);
    });
    // A file that cannot be used changes nothing, also for a worker that starts while it is there.
    writeFileSync(sidecar.config, "version: 1\nlimits: nonsense\n");
    sidecar.signal("SIGHUP");
    await until("it is refused", 10_000, async () => {
      return (await sidecar.metric('aliquot_config_reloads_total{outcome="failed"}')) === 1;
    });
    process.kill(workersOf(sidecar.pid)[0] ?? 0, "SIGKILL");
    await until("one was replaced", 20_000, async () => {
      const metrics = await sidecar.metrics();
      const isReplaced = metrics.get("aliquot_worker_restarts_total") === 1;
      return isReplaced && metrics.get("aliquot_workers_up") === WORKERS;
    });
    expect(await bursts()).toEqual(new Set([70]));
    expect(sidecar.output.match(/was reloaded/g)).toHaveLength(1);
  });

  it("stop without losing a request, and leave nothing behind", async () => {
    const sidecar = await start();
    const workers = workersOf(sidecar.pid);
    expect(workers).toHaveLength(WORKERS);
    const load = offer({ sidecar, limit: "much", key: "k", perSecond: 400 }, 1_500);
    await new Promise((resolve) => setTimeout(resolve, 700));
    const exit = sidecar.terminate();
    const { allowed, failed } = await load;
    expect(await exit).toEqual({ code: 0, signal: null });
    // Only what came after the stop had nobody to connect to.
    expect(allowed).toBeGreaterThan(50);
    expect(allowed + failed).toBe(600);
    expect(existsSync(sidecar.socket)).toBe(false);
    expect(workers.filter(isAlive)).toEqual([]);
    expect(sidecar.output).not.toContain("warn");
  });
});

describe("a sidecar of several workers", () => {
  it("replaces the socket that a crash left, and no other's", async () => {
    const first = await start(TWO);
    const { socket } = first;
    expect(statSync(socket).mode & 0o777).toBe(0o660);
    const second = await start({ ...TWO, socket, unready: true });
    expect(await second.exited).toEqual({ code: 1, signal: null });
    expect(second.output).toContain(`another process answers on the socket ${socket}`);
    expect((await askAnew(first, "/v1/check?limit=much&key=k")).status).toBe(200);
    const workers = workersOf(first.pid);
    await first.crash();
    await until("its workers have noticed", 10_000, () => !workers.some(isAlive));
    expect(existsSync(socket)).toBe(true);
    const third = await start({ ...TWO, socket });
    expect((await askAnew(third, "/v1/check?limit=much&key=k")).status).toBe(200);
  });

  it("does not start on a port in use: one sentence, no process left", async () => {
    const first = await start(TWO);
    const second = await start({ ...TWO, httpPort: first.httpPort, unready: true });
    const exit = await second.exited;
    expect(exit).toEqual({ code: 1, signal: null });
    expect(second.output.trim()).toBe(
      `aliquot: cannot listen on 127.0.0.1:${first.httpPort}: the address is in use`,
    );
    expect(existsSync(second.socket)).toBe(false);
  });
});
