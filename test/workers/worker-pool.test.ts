import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { until } from "../../fleet/until.ts";
import { SystemClock } from "../../src/runtime/system-clock.ts";
import { WorkerPool, type WorkerPoolOptions } from "../../src/workers/worker-pool.ts";

const folder = mkdtempSync(join(tmpdir(), "aliquot-pool-"));
let pool: WorkerPool<string> | undefined;

afterEach(async () => {
  pool?.kill();
  await pool?.stop();
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Says what a worker says until it is up, and then does as `then` says. */
const worker = (then: string): string => `
  process.on("message", (message) => {
    if (message.kind === "begin") process.send({ kind: "up", addresses: {}, report: {} });
    if (message.kind === "stop") process.disconnect();
  });
  process.send({ kind: "hello" });
  ${then}`;

/** Processes that run a few lines in place of a sidecar. */
function startPool(script: string, options: Partial<WorkerPoolOptions<string>> = {}) {
  const exec = join(folder, "worker.cjs");
  writeFileSync(exec, script);
  const told = { gone: 0, hopeless: false, lines: [] as string[] };
  const note = (_fields: object, message: string): void => {
    told.lines.push(message);
  };
  pool = new WorkerPool<string>({
    workers: 2,
    exec,
    firstPauseMs: 1,
    clock: new SystemClock(),
    log: { info: note, warn: note, error: note },
    begin: (index) => ({ kind: "begin", index, texts: [], boundAs: new Map() }),
    onMessage: () => {},
    onGone: () => {
      told.gone += 1;
    },
    onListening: () => {},
    onHopeless: () => {
      told.hopeless = true;
    },
    ...options,
  });
  return { pool, told, up: pool.start() };
}

describe("a pool of workers", () => {
  it("is up when all are, replaces one that dies in its place, and stops them all", async () => {
    const { pool: running, told, up } = startPool(worker(""));
    await up;
    const [first, second] = running.up;
    first?.kill();
    await until("another has its place", 20_000, () => {
      return running.up.length === 2 && running.up[0]?.pid !== first?.pid;
    });
    expect(running.up.map(({ index }) => index)).toEqual([0, 1]);
    expect(running.up[1]?.pid).toBe(second?.pid);
    expect(told).toMatchObject({ gone: 1, lines: ["a worker died and is replaced"] });
    await running.stop();
    expect(told).toMatchObject({ gone: 3, hopeless: false });
  });

  it("does not start when a worker cannot, and says what it said", async () => {
    const { up } = startPool(`process.send({ kind: "failed", message: "no such secret" })`);
    await expect(up).rejects.toThrow("no such secret");
  });

  it("does not start when a worker ends without a word", async () => {
    const { up } = startPool("process.exit(3)");
    await expect(up).rejects.toThrow(/worker \d ended before it was ready \(exit code 3\)/);
  });

  it("stops also a worker that is still starting", async () => {
    const slow = worker("").replace('process.send({ kind: "hello" });', "");
    const { pool: running, up } = startPool(
      `${slow} setTimeout(() => process.send({ kind: "hello" }), 200); setInterval(() => {}, 1000);`,
    );
    void up.catch(() => {});
    await running.stop();
    expect(running.workers).toEqual([]);
  });

  it("kills one that hangs, and replaces it", async () => {
    const hangs = 'setInterval(() => process.send({ kind: "report", report: {} }), 200);';
    const {
      pool: running,
      told,
      up,
    } = startPool(
      worker(`${hangs} process.on("message", ({ kind }) => { while (kind === "report"); });`),
      { silentSecondsMax: 3 },
    );
    await up;
    const [first, second] = running.up;
    first?.send({ kind: "report", id: 1 });
    await until("another has its place", 25_000, () => {
      return running.up.length === 2 && running.up[0]?.pid !== first?.pid;
    });
    expect(running.up[1]?.pid).toBe(second?.pid);
    expect(told.lines).toEqual(["a worker hangs and is killed", "a worker died and is replaced"]);
  });

  it("gives up when workers die as soon as they start", async () => {
    const { up, told } = startPool(worker("setTimeout(() => process.exit(1), 300);"));
    await up;
    await until("it gives up", 25_000, () => told.hopeless);
    expect(told.gone).toBeGreaterThanOrEqual(8);
    expect(told.lines.at(-1)).toBe("workers die as soon as they start; giving up");
  });
});
