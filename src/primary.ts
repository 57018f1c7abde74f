/**
 * The primary of several workers: opens what they share, and is the sidecar to everybody else.
 *
 * It decides nothing. It binds the listeners, follows the configuration and hands it on as the very
 * bytes that it found good, answers probes and scrapes for all workers, and replaces those that
 * die. Without Redis it holds the store by which the limits hold over all of them.
 */
import type { Logger } from "pino";
import { allLimits, type Config, type ListenConfig } from "./config/config.ts";
import type { Reading, ReadTexts } from "./config/reading.ts";
import { LiveConfig } from "./config/reload.ts";
import { US_PER_MS } from "./core/units.ts";
import type { Daemon, DaemonIo } from "./daemon-io.ts";
import { newIdentity } from "./membership/identity.ts";
import { createLogger } from "./observe/logger.ts";
import { Observation } from "./observe/observation.ts";
import { outlivingMetrics, type ProcessMetrics } from "./observe/pooled-processes.ts";
import { openOps } from "./ops-desk.ts";
import type { NamedCoordinator } from "./ports/coordinator.ts";
import { ConfigWatch } from "./runtime/config-watch.ts";
import { endsWithin } from "./runtime/deadline.ts";
import { FaultLog } from "./runtime/fault-log.ts";
import { greetingLines } from "./runtime/greeting.ts";
import { Latch } from "./runtime/latch.ts";
import { endSoon, watchForEnd, watchForReload } from "./runtime/signals.ts";
import { SystemClock } from "./runtime/system-clock.ts";
import type { HttpListener } from "./server/listener.ts";
import type { ObservedEngine } from "./server/ops.ts";
import { SharedSockets } from "./server/shared-sockets.ts";
import { createEmbeddedCoordinator } from "./store/embedded/embedded-coordinator.ts";
import { EmbeddedStore } from "./store/embedded/embedded-store.ts";
import type { Addresses, ToPrimary, ToWorker } from "./workers/messages.ts";
import { PooledReports } from "./workers/pooled-reports.ts";
import { answerFrom } from "./workers/store-host.ts";
import { type PoolWorker, WorkerPool } from "./workers/worker-pool.ts";

/** Beyond the time that a worker takes to stop, to start the stop and to hear of its end. */
const STOP_MARGIN_US = 1_000 * US_PER_MS;
/** A scrape waits no longer for a worker; what it told last counts then. */
const REPORT_WAIT_US = 500 * US_PER_MS;

/**
 * Starts the workers of a sidecar and resolves when all are ready.
 *
 * @throws {Error} When one cannot start; the message is a sentence for the operator.
 */
export async function startPrimary(config: Config, io: DaemonIo): Promise<Daemon> {
  try {
    const primary = new Primary(config, io);
    await primary.open();
    return { finished: primary.finish() };
  } catch (error) {
    endSoon(1);
    throw error;
  }
}

class Primary {
  private readonly io: DaemonIo;
  private readonly clock = new SystemClock();
  private readonly log: Logger;
  private readonly faults: FaultLog;
  private readonly onFault = (error: unknown): void => this.faults.note(error);
  private readonly live: LiveConfig;
  private readonly watch: ConfigWatch<Reading>;
  private readonly pool: WorkerPool<ReadTexts>;
  private readonly sockets = new SharedSockets();
  private readonly reports: PooledReports;
  private readonly observed = new Observation(this.clock);
  private readonly store: EmbeddedStore | undefined;
  /** The store as each worker sees it. */
  private readonly stores = new Map<number, NamedCoordinator>();
  /** The configuration of the start, and the one in force when it is another. */
  private texts: readonly ReadTexts[];
  private readonly started = new Latch();
  private readonly stopAsked = new Latch();
  private readonly hopeless = new Latch();
  private readonly awaited = new Map<number, () => void>();
  private lastQuestion = 0;
  private restarts = 0;
  private addresses: Addresses = {};
  private ops: HttpListener | undefined;

  constructor(config: Config, io: DaemonIo) {
    this.io = io;
    const { workers, podId, keysMax } = config;
    this.log = createLogger({ level: config.logLevel, base: { pod: podId } });
    this.faults = new FaultLog(this.clock, (fields, message) => this.log.error(fields, message));
    watchForEnd(this.log, () => this.stopAsked.set());
    const { reader, reading } = io;
    const { log, clock, onFault } = this;
    this.texts = [reading.texts];
    const putInForce = ({ logLevel }: Config): void => {
      this.log.level = logLevel;
    };
    this.live = new LiveConfig({ first: config, reader, putInForce, log, wallMs: Date.now });
    const subject = {
      look: () => this.live.look(),
      isUsable: (look: Reading) => this.live.isUsable(look),
      changed: (look: Reading) => this.changed(look),
      same: () => this.live.same(),
    };
    this.watch = new ConfigWatch({ subject, known: reading.fingerprint, clock, log, onFault });
    watchForReload(() => this.watch.ask());
    const names = (): readonly string[] => allLimits(this.live.config).map(({ name }) => name);
    const outliving = (lists: readonly (readonly object[])[]): ProcessMetrics =>
      outlivingMetrics(lists as readonly ProcessMetrics[]);
    this.reports = new PooledReports({ workers, names, outliving });
    if (config.redis === undefined) this.store = new EmbeddedStore({ keysMax: workers * keysMax });
    this.pool = new WorkerPool<ReadTexts>({
      workers,
      log,
      clock,
      begin: (index) => this.begin(index),
      onMessage: (worker, message) => this.heard(worker, message),
      onGone: (worker) => this.gone(worker),
      onListening: (address) => this.sockets.bound(String(address), onFault),
      onHopeless: () => this.hopeless.set(),
    });
    // Whoever asked for the stop has no patience left, or the stop took too long. A primary that
    // fails leaves its workers alone: they notice, and drain.
    process.on("exit", () => {
      if (this.stopAsked.isSet) this.pool.kill();
    });
  }

  /** Opens every listener and starts every worker, or none. */
  async open(): Promise<void> {
    const { listen } = this.live.config;
    try {
      await this.sockets.claim(pathsOf(listen), listen.socketMode);
      const ready = Promise.all([this.pool.start(), this.sockets.inPlace]);
      // A stop that comes during the start need not wait for its end.
      await Promise.race([ready, this.stopAsked.done]);
      if (listen.ops !== undefined) await this.openOps();
      this.watch.start();
    } catch (error) {
      this.pool.kill();
      this.sockets.release();
      throw error;
    }
    this.started.set();
    if (!this.stopAsked.isSet) this.io.stdout(this.greeting());
  }

  /** Waits for the word to stop, then stops; resolves with the exit code. */
  async finish(): Promise<number> {
    await Promise.race([this.stopAsked.done, this.hopeless.done]);
    const code = this.hopeless.isSet ? 1 : 0;
    this.stopAsked.set();
    this.watch.stop();
    this.sockets.release();
    const withinUs = this.live.config.drainTimeoutUs + STOP_MARGIN_US;
    if (!(await endsWithin(this.pool.stop(), withinUs))) {
      this.log.warn({}, "workers took too long to stop and are killed");
      this.pool.kill();
    }
    await this.ops?.stop(0);
    endSoon(code);
    return code;
  }

  private begin(index: number): ToWorker<ReadTexts> {
    return { kind: "begin", index, texts: this.texts, boundAs: this.sockets.boundAs };
  }

  /** What is found good goes on to all workers as it was read. */
  private changed(look: Reading): void {
    this.live.changed(look);
    if (look.load().config === undefined) return;
    this.texts = [this.io.reading.texts, look.texts];
    this.pool.broadcast({ kind: "configure", texts: look.texts });
  }

  private heard(worker: PoolWorker<ReadTexts>, message: ToPrimary): void {
    if (message.kind === "up" || message.kind === "report") {
      this.reports.note(worker.id, message.report);
    }
    if (message.kind === "up") this.addresses = message.addresses;
    if (message.kind === "report" && message.id !== undefined) this.awaited.get(message.id)?.();
    if (message.kind !== "store") return;
    const { id, question } = message;
    answerFrom(this.storeOf(worker), question)
      .then((answer) => worker.send({ kind: "stored", id, answer }))
      .catch(this.onFault);
  }

  private storeOf({ id, index }: PoolWorker<ReadTexts>): NamedCoordinator {
    const known = this.stores.get(id);
    if (known !== undefined) return known;
    if (this.store === undefined) throw new Error("a worker asks for a store that is not here");
    const { podId, incarnation } = newIdentity(`${this.live.config.podId}/${index}`);
    const store = createEmbeddedCoordinator(this.store, podId, incarnation, this.clock);
    this.stores.set(id, store);
    return store;
  }

  private gone({ id }: PoolWorker<ReadTexts>): void {
    this.reports.retire(id);
    if (!this.stopAsked.isSet) this.restarts += 1;
    // It cannot take leave by itself any more; a member that left is not counted twice.
    this.stores.get(id)?.leave().catch(this.onFault);
    this.stores.delete(id);
  }

  /** Asks all workers and waits for their answers, or as long as a scrape may wait. */
  private async refresh(): Promise<void> {
    const answers = this.pool.up.map((worker) => {
      this.lastQuestion += 1;
      const id = this.lastQuestion;
      const answer = new Promise<void>((resolve) => this.awaited.set(id, resolve));
      worker.send({ kind: "report", id });
      return endsWithin(answer, REPORT_WAIT_US).finally(() => this.awaited.delete(id));
    });
    await Promise.all(answers);
    this.reports.fillDurations(this.observed.durations, this.observed.reconcileDurations);
  }

  private async openOps(): Promise<void> {
    const { ops } = this.live.config.listen;
    if (ops === undefined) return;
    const { live, reports, pool, observed: observation, onFault } = this;
    const { workers } = live.config;
    observation.start(() => {
      reports.fillDurations(observation.durations, observation.reconcileDurations);
      return reports.figures();
    });
    this.ops = await openOps(ops, {
      version: this.io.version,
      live,
      store: this.storeKind,
      engine: this.pooledEngine(),
      observation,
      observed: { history: observation.history, keys: { figures: (most) => reports.keys(most) } },
      started: () => this.started.isSet,
      draining: () => this.stopAsked.isSet,
      forwardUnmatched: () => reports.forwardUnmatched,
      descriptors: () => reports.descriptors,
      onFault,
      workers: {
        figures: () => ({ workers, up: pool.up.length, restarts: this.restarts }),
        processes: () => reports.processes as readonly ProcessMetrics[],
        refresh: () => this.refresh(),
      },
    });
  }

  /** The engines of all workers, as one that can be looked at. */
  private pooledEngine(): ObservedEngine {
    const { live, reports } = this;
    const limits: ObservedEngine["limits"] = () => allLimits(live.config);
    const unknown = { mode: "hybrid", reason: "no worker has told yet", intervalUs: 0 } as const;
    return {
      limits,
      limit: (name) => limits().find((limit) => limit.name === name),
      standing: ({ name }) => reports.standing(name) ?? { ...unknown, boundTokens: 0 },
      counts: () => reports.figures(),
      figures: () => reports.figures(),
    };
  }

  private get storeKind(): "embedded" | "redis" {
    return this.store === undefined ? "redis" : "embedded";
  }

  private greeting(): string {
    const { config } = this.live;
    return greetingLines({
      version: this.io.version,
      fleet: config.fleet,
      store: this.storeKind,
      workers: config.workers,
      limitNames: allLimits(config).map(({ name }) => name),
      ...this.addresses,
      ops: this.ops?.address,
    });
  }
}

function pathsOf({ http, grpc, resp }: ListenConfig): readonly string[] {
  return [http.socket, grpc.socket, resp.socket].filter((path) => path !== undefined);
}
