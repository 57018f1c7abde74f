import { EventEmitter } from "node:events";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { ToPrimary } from "../../src/workers/messages.ts";
import { WorkerPool } from "../../src/workers/worker-pool.ts";
import { ManualClock } from "../store/pod.ts";

/** As much of a worker of node:cluster as a pool sees. */
class Forked extends EventEmitter {
  readonly id = forked.length + 1;
  readonly told: unknown[] = [];
  readonly process = Object.assign(new EventEmitter(), {
    pid: 1_000 + this.id,
    connected: true,
    exitCode: 0,
    signalCode: null,
    kill: () => true,
  });

  isConnected(): boolean {
    return this.process.connected;
  }

  send(message: unknown): void {
    this.told.push(message);
  }

  says(message: unknown): void {
    this.emit("message", message);
  }
}

let forked: Forked[] = [];

vi.mock("node:cluster", () => {
  const fork = (): Forked => {
    const worker = new Forked();
    forked.push(worker);
    return worker;
  };
  return { default: { setupPrimary: () => {}, fork } };
});

const UP = { kind: "up", addresses: {}, report: {} };
const CONFIGURE = { kind: "configure", texts: "new" } as const;

function startPool() {
  const heard: ToPrimary["kind"][] = [];
  let texts = "old";
  const silent = (): void => {};
  const pool = new WorkerPool<string>({
    workers: 1,
    clock: new ManualClock(),
    log: { info: silent, warn: silent, error: silent },
    begin: (index) => ({ kind: "begin", index, texts: [texts], boundAs: new Map() }),
    onMessage: (_worker, { kind }) => heard.push(kind),
    onGone: silent,
    onListening: silent,
    onHopeless: silent,
  });
  void pool.start();
  const configure = (): void => {
    texts = CONFIGURE.texts;
    pool.broadcast(CONFIGURE);
  };
  return { pool, heard, configure, worker: forked[0] as Forked };
}

beforeEach(() => {
  forked = [];
  vi.useFakeTimers();
});

afterEach(() => vi.useRealTimers());

describe("what a pool and a worker say to each other", () => {
  it("reaches a worker that is still starting once it is up: before, nobody may listen", () => {
    const { configure, worker } = startPool();
    worker.says({ kind: "hello" });
    configure();
    worker.told.length = 0;
    worker.says(UP);
    expect(worker.told).toEqual([CONFIGURE]);
    worker.says(UP);
    expect(worker.told).toEqual([CONFIGURE]);
  });

  it("is not told twice to one that begins with it, nor to one that heard it", () => {
    const { configure, worker } = startPool();
    configure();
    worker.told.length = 0;
    worker.says({ kind: "hello" });
    worker.says(UP);
    expect(worker.told).toMatchObject([{ kind: "begin", texts: ["new"] }]);
    configure();
    expect(worker.told.slice(1)).toEqual([CONFIGURE]);
  });

  it("is a stop for one that comes up while the pool stops", () => {
    const { pool, worker } = startPool();
    worker.says({ kind: "hello" });
    void pool.stop();
    worker.told.length = 0;
    worker.says(UP);
    expect(worker.told).toEqual([{ kind: "stop" }]);
  });

  it("ends with the worker: a word that comes too late is no longer heard", () => {
    const { pool, heard, worker } = startPool();
    worker.says({ kind: "hello" });
    worker.says(UP);
    worker.process.emit("exit");
    vi.advanceTimersByTime(200);
    expect(pool.workers).toEqual([]);
    worker.says({ kind: "report", report: {} });
    expect(heard).toEqual(["hello", "up"]);
  });
});
