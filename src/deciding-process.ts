/**
 * One process that decides: the whole sidecar, or one of its workers. This file knows all parts,
 * and it only connects them.
 *
 * Checks are answered from the moment a listener is bound; what waits for the first join is only
 * the word of the probes. So no request can be lost to the order of the start.
 */
import type { Logger } from "pino";
import type { Address } from "./config/address.ts";
import { allLimits, type Config } from "./config/config.ts";
import type { Reading, ReadTexts } from "./config/reading.ts";
import { LiveConfig } from "./config/reload.ts";
import { type DurationUs, US_PER_MS, US_PER_SECOND } from "./core/units.ts";
import type { DaemonIo } from "./daemon-io.ts";
import { createLoop, STORE_TIMEOUT_US } from "./engine-loop.ts";
import { createDescriptorMatcher } from "./envoy/descriptor-tree.ts";
import { createMembership } from "./membership/create-membership.ts";
import { newIdentity } from "./membership/identity.ts";
import type { Membership } from "./membership/membership.ts";
import { EvictionLog } from "./observe/eviction-log.ts";
import { createLogger } from "./observe/logger.ts";
import { Observation } from "./observe/observation.ts";
import { processMetricsTeller } from "./observe/process-metrics.ts";
import { MembershipSourceLog } from "./observe/source-log.ts";
import { openOps } from "./ops-desk.ts";
import { PolicyTable } from "./policy/policy-table.ts";
import type { Coordinator } from "./ports/coordinator.ts";
import type { DescriptorMatcher } from "./ports/descriptors.ts";
import { ConfigWatch } from "./runtime/config-watch.ts";
import { endsWithin } from "./runtime/deadline.ts";
import { drain } from "./runtime/drain.ts";
import { FaultLog } from "./runtime/fault-log.ts";
import { greetingLines } from "./runtime/greeting.ts";
import { Latch } from "./runtime/latch.ts";
import type { ReconcileLoop } from "./runtime/reconcile-loop.ts";
import { endSoon, watchForEnd, watchForReload } from "./runtime/signals.ts";
import { closingSteps, leavingSteps, type StopParts } from "./runtime/stop-steps.ts";
import { SystemClock } from "./runtime/system-clock.ts";
import { SystemRandom } from "./runtime/system-random.ts";
import { FrontDoors } from "./server/front-doors.ts";
import type { HttpListener } from "./server/listener.ts";
import type { ConnectRedis } from "./store/redis/load-client.ts";
import { reportOf } from "./workers/reporter.ts";
import type { WorkerReport } from "./workers/worker-report.ts";
import type { WorkerSeat } from "./workers/worker-seat.ts";

/** A pod that cannot join for so long starts without: its fallback answers until it can. */
const JOIN_WAIT_US: DurationUs = 2 * US_PER_SECOND;
/** Part of the time of a stop that open requests may take: they should end in milliseconds. */
const CLOSE_PART = 0.25;
/** The primary has told what became of a file. */
const UNTOLD = { info: () => {}, warn: () => {}, error: () => {} };

export type Seat = WorkerSeat<ReadTexts>;

export interface Surroundings {
  /** Undefined without Redis. */
  readonly connect: ConnectRedis | undefined;
  /** Of a worker; undefined for a process that is the whole sidecar. */
  readonly seat: Seat | undefined;
}

/** One life of it, from the first listener to the last. */
export class DecidingProcess {
  private readonly live: LiveConfig;
  private readonly watch: ConfigWatch<Reading>;
  private readonly io: DaemonIo;
  private readonly seat: Seat | undefined;
  /** Who this process is to the fleet. */
  private readonly memberId: string;
  /** Only for a worker: it watches the event loop. */
  private readonly processMetrics: ReturnType<typeof processMetricsTeller> = async () => [];
  private readonly clock = new SystemClock();
  private readonly random = new SystemRandom();
  private readonly log: Logger;
  private readonly faults: FaultLog;
  private readonly evictions: EvictionLog;
  private readonly onFault = (error: unknown): void => this.faults.note(error);
  private readonly crash: (error: unknown) => never;
  private readonly loop: ReconcileLoop;
  private readonly policies: PolicyTable;
  private readonly coordinator: Coordinator | undefined;
  private readonly membership: Membership | undefined;
  private readonly stopAsked = new Latch();
  private readonly connectFailed = new Latch();
  private readonly started = new Latch();
  private readonly observed = new Observation(this.clock);
  private matcher: DescriptorMatcher;
  private readonly doors: FrontDoors;
  private opsListener: HttpListener | undefined;

  constructor(config: Config, io: DaemonIo, { connect, seat }: Surroundings) {
    this.io = io;
    this.seat = seat;
    if (seat !== undefined) this.processMetrics = processMetricsTeller();
    this.memberId = seat?.memberId(config.podId) ?? config.podId;
    this.log = createLogger({ level: config.logLevel, base: { pod: this.memberId } });
    this.faults = new FaultLog(this.clock, (fields, message) => this.log.error(fields, message));
    this.evictions = new EvictionLog(this.log);
    this.crash = watchForEnd(this.log, () => this.stopAsked.set());
    const { reader, reading } = io;
    const { clock, log, onFault, putInForce } = this;
    const told = seat === undefined ? log : UNTOLD;
    this.live = new LiveConfig({ first: config, reader, putInForce, log: told, wallMs: Date.now });
    const watched = { subject: this.live, known: reading.fingerprint };
    this.watch = new ConfigWatch({ ...watched, clock, log, onFault });
    if (seat === undefined) watchForReload(() => this.watch.ask());
    this.coordinator = this.connect(connect);
    this.loop = this.createLoop();
    this.policies = new PolicyTable(config.policies);
    this.matcher = createDescriptorMatcher(config.envoy?.domains ?? []);
    this.membership = this.createMembership();
    this.doors = this.createDoors();
  }

  /** Puts in force what the primary has put in force. */
  configure(reading: Reading): void {
    this.live.changed(reading);
  }

  /** Binds every listener or none. */
  async open(): Promise<void> {
    const { listen } = this.config;
    this.loop.start();
    this.observed.start(() => {
      const counts = this.loop.counts();
      this.evictions.look(this.clock.monotonicUs(), counts);
      return counts;
    });
    try {
      await this.doors.open({ ...listen, boundAs: this.seat?.begin.boundAs });
      if (this.seat !== undefined) this.follow(this.seat);
      else {
        if (listen.ops !== undefined) this.opsListener = await this.openOps(listen.ops);
        this.watch.start();
      }
    } catch (error) {
      await drain(closingSteps(this.stopParts()), US_PER_SECOND, this.clock);
      throw error;
    }
  }

  /** Tries to join the fleet, for two seconds at most, and reports for duty. */
  async join(): Promise<void> {
    this.membership?.start();
    if (this.membership !== undefined) {
      const tried = [this.membership.joined, this.connectFailed.done, this.stopAsked.done];
      await endsWithin(Promise.race(tried), JOIN_WAIT_US);
    }
    this.started.set();
    if (this.seat === undefined) this.io.stdout(this.greeting());
    else this.seat.up(this.doors.addresses, await this.report(true));
  }

  /** Waits for the word to stop, then stops; resolves with the exit code. */
  async finish(): Promise<number> {
    await this.stopAsked.done;
    const parts = this.stopParts();
    const steps = [...leavingSteps(parts), ...closingSteps(parts)];
    for (const { name, error } of await drain(steps, this.config.drainTimeoutUs, this.clock)) {
      const detail = error instanceof Error ? error.message : "out of time";
      this.log.warn({ step: name, detail }, "a step of the stop did not end well");
    }
    const untold = this.loop.figures().limits.reduce((sum, limit) => sum + limit.unreconciled, 0);
    if (untold > 0) this.log.warn({ tokens: untold }, "the store was not told of all admissions");
    await this.seat?.leave(await this.report(true));
    endSoon(0);
    return 0;
  }

  /** A worker does as its primary does. */
  private follow(seat: Seat): void {
    seat.follow({
      configure: (texts) => this.configure(this.io.reader.readingOf(texts)),
      stop: () => this.stopAsked.set(),
      report: (isWhole) => this.report(isWhole),
      onFault: this.crash,
    });
  }

  private report(isWhole: boolean): Promise<WorkerReport> {
    const { loop: engine, observed, policies, processMetrics, doors } = this;
    const parts = { engine, observed, policies, process: processMetrics, envoy: doors.envoy };
    return reportOf(parts, isWhole);
  }

  /** The configuration in force. */
  private get config(): Config {
    return this.live.config;
  }

  /** All at one instant: no check sees the limits of one file and the policies of another. */
  private readonly putInForce = (config: Config): void => {
    const matcher = createDescriptorMatcher(config.envoy?.domains ?? []);
    this.loop.configChanged(allLimits(config));
    this.policies.configChanged(config.policies);
    this.matcher = matcher;
    this.log.level = config.logLevel;
  };

  private connect(connect: ConnectRedis | undefined): Coordinator | undefined {
    const { redis, fleet } = this.config;
    if (redis === undefined || connect === undefined) return this.seat?.store(STORE_TIMEOUT_US);
    return connect({
      ...redis,
      ...newIdentity(this.memberId),
      fleet,
      clock: this.clock,
      random: this.random,
      onConnection: (change) => {
        if (!change.up) this.connectFailed.set();
        else this.membership?.nudge();
      },
      onEviction: (policy) => this.evictions.mayEvict(policy),
    });
  }

  private createLoop(): ReconcileLoop {
    const { config, memberId, coordinator, clock, random, log, observed, crash: onFault } = this;
    const { reconcileDurations } = observed;
    const parts = { memberId, coordinator, clock, random, log, reconcileDurations, onFault };
    return createLoop(config, parts);
  }

  private createMembership(): Membership | undefined {
    const { coordinator, loop, random, clock } = this;
    if (coordinator === undefined) return undefined;
    const { membership, workers } = this.config;
    const terms =
      membership.source === "static"
        ? { ...membership, pods: workers * membership.pods }
        : membership;
    const log = new MembershipSourceLog(this.log);
    const largeCosts = (): readonly string[] => loop.largeCosts();
    const parts = { coordinator, random, clock, log, listener: loop, largeCosts };
    return createMembership(terms, { ...terms, ...parts });
  }

  private createDoors(): FrontDoors {
    const { clock, policies, loop, observed } = this;
    return new FrontDoors({
      decider: observed.keys.over(loop),
      clock,
      headers: () => this.config.headers,
      wallMs: Date.now,
      policies,
      matcher: () => this.matcher,
      inline: () => this.config.resp,
      version: this.io.version,
      observeUs: (door, us) => observed.durations[door].observeUs(us),
      onFault: this.onFault,
    });
  }

  private openOps(address: Address): Promise<HttpListener> {
    const { live, loop: engine, observed: observation, onFault } = this;
    const { envoy } = this.doors;
    return openOps(address, {
      version: this.io.version,
      live,
      store: this.storeKind,
      engine,
      observation,
      started: () => this.started.isSet,
      draining: () => this.stopAsked.isSet,
      forwardUnmatched: () => this.policies.unmatched,
      descriptors: () => ({ unmatched: envoy.unmatched, shown: envoy.shown.all() }),
      onFault,
    });
  }

  private get storeKind(): "embedded" | "redis" {
    return this.coordinator === undefined ? "embedded" : "redis";
  }

  private greeting(): string {
    return greetingLines({
      version: this.io.version,
      fleet: this.config.fleet,
      store: this.storeKind,
      limitNames: allLimits(this.config).map(({ name }) => name),
      ...this.doors.addresses,
      ops: this.opsListener?.address,
    });
  }

  private stopParts(): StopParts {
    const { watch, doors, loop, membership, coordinator, opsListener: ops, config } = this;
    const closeMs = (CLOSE_PART * config.drainTimeoutUs) / US_PER_MS;
    return { watch, doors, closeMs, loop, membership, coordinator, ops };
  }
}
