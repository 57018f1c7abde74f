/**
 * The running sidecar: the only file that knows all parts, and it only connects them.
 *
 * Checks are answered from the moment a listener is bound; what waits for the first join is only
 * the word of the probes. So no request can be lost to the order of the start.
 */
import type { Logger } from "pino";
import type { Address } from "./config/address.ts";
import { allLimits, type Config } from "./config/config.ts";
import type { ConfigReader, Reading } from "./config/reading.ts";
import { LiveConfig } from "./config/reload.ts";
import { PodLimiter } from "./core/pod-limiter.ts";
import { type DurationUs, US_PER_MS, US_PER_SECOND } from "./core/units.ts";
import { createDescriptorMatcher } from "./envoy/descriptor-tree.ts";
import { createMembership } from "./membership/create-membership.ts";
import { newIdentity } from "./membership/identity.ts";
import type { Membership } from "./membership/membership.ts";
import { createLogger } from "./observe/logger.ts";
import { Observation } from "./observe/observation.ts";
import { MembershipSourceLog } from "./observe/source-log.ts";
import { StoreLog } from "./observe/store-log.ts";
import { PolicyTable } from "./policy/policy-table.ts";
import type { Coordinator } from "./ports/coordinator.ts";
import type { DescriptorMatcher } from "./ports/descriptors.ts";
import { ConfigWatch } from "./runtime/config-watch.ts";
import { endsWithin } from "./runtime/deadline.ts";
import { drain } from "./runtime/drain.ts";
import { FaultLog } from "./runtime/fault-log.ts";
import { greetingLines } from "./runtime/greeting.ts";
import { Latch } from "./runtime/latch.ts";
import { ReconcileLoop } from "./runtime/reconcile-loop.ts";
import { endSoon, watchForEnd, watchForReload } from "./runtime/signals.ts";
import { closingSteps, leavingSteps, type StopParts } from "./runtime/stop-steps.ts";
import { StoreWatch } from "./runtime/store-watch.ts";
import { SystemClock } from "./runtime/system-clock.ts";
import { SystemRandom } from "./runtime/system-random.ts";
import { FrontDoors } from "./server/front-doors.ts";
import { type HttpListener, listenHttp } from "./server/listener.ts";
import { createOpsHandler } from "./server/ops.ts";
import { keyDigest } from "./store/redis/keys.ts";
import { type ConnectRedis, loadRedisClient } from "./store/redis/load-client.ts";

/** What the daemon needs of whoever starts it. */
export interface DaemonIo {
  /** Takes whole lines, each with its line feed; for people. The log goes its own way. */
  readonly stdout: (text: string) => void;
  readonly version: string;
  /** Where the configuration came from, to look there again. */
  readonly reader: ConfigReader;
  /** The look that it came from. */
  readonly reading: Reading;
}

export interface Daemon {
  /** Resolves with the exit code of the process once everything is stopped; never rejects. */
  readonly finished: Promise<number>;
}

/** A pod that cannot join for so long starts without: its fallback answers until it can. */
const JOIN_WAIT_US: DurationUs = 2 * US_PER_SECOND;
/** Part of the time of a stop that open requests may take: they should end in milliseconds. */
const CLOSE_PART = 0.25;

/**
 * Starts a sidecar and resolves when it is ready. Redis absent is not an error.
 *
 * The daemon takes over the process: it listens for signals, and a second signal or an unexpected
 * error ends the process at once with exit code 1.
 *
 * @throws {Error} When a listener cannot be bound or a secret cannot be read; the message is a
 *   sentence for the operator.
 */
export async function startDaemon(config: Config, io: DaemonIo): Promise<Daemon> {
  try {
    const connect = config.redis === undefined ? undefined : await loadRedisClient();
    const run = new Run(config, io, connect);
    await run.open();
    await run.join();
    return { finished: run.finish() };
  } catch (error) {
    endSoon(1);
    throw error;
  }
}

/** One life of the sidecar, from the first listener to the last. */
class Run {
  private readonly live: LiveConfig;
  private readonly watch: ConfigWatch<Reading>;
  private readonly io: DaemonIo;
  private readonly clock = new SystemClock();
  private readonly random = new SystemRandom();
  private readonly log: Logger;
  private readonly faults: FaultLog;
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

  constructor(config: Config, io: DaemonIo, connect: ConnectRedis | undefined) {
    this.io = io;
    this.log = createLogger({ level: config.logLevel, base: { pod: config.podId } });
    this.faults = new FaultLog(this.clock, (fields, message) => this.log.error(fields, message));
    this.crash = watchForEnd(this.log, () => this.stopAsked.set());
    const { reader, reading } = io;
    const { clock, log, onFault, putInForce } = this;
    this.live = new LiveConfig({ first: config, reader, putInForce, log, wallMs: Date.now });
    const watched = { subject: this.live, known: reading.fingerprint };
    this.watch = new ConfigWatch({ ...watched, clock, log, onFault });
    watchForReload(() => this.watch.ask());
    this.coordinator = this.connect(connect);
    this.loop = this.createLoop();
    this.policies = new PolicyTable(config.policies);
    this.matcher = createDescriptorMatcher(config.envoy?.domains ?? []);
    this.membership = this.createMembership();
    this.doors = this.createDoors();
  }

  /** Binds every listener or none. */
  async open(): Promise<void> {
    const { listen } = this.config;
    this.loop.start();
    try {
      await this.doors.open(listen);
      if (listen.ops !== undefined) this.opsListener = await this.openOps(listen.ops);
      this.watch.start();
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
    this.io.stdout(this.greeting());
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
    endSoon(0);
    return 0;
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
    const { redis, fleet, podId } = this.config;
    if (redis === undefined || connect === undefined) return undefined;
    return connect({
      ...redis,
      ...newIdentity(podId),
      fleet,
      clock: this.clock,
      random: this.random,
      onConnection: (change) => {
        if (!change.up) this.connectFailed.set();
        else this.membership?.nudge();
      },
    });
  }

  private createLoop(): ReconcileLoop {
    const { config, coordinator, clock } = this;
    const { podId, decisionTimeoutUs, keysMax, redis } = config;
    const limits = allLimits(config);
    const storeWatch = new StoreWatch(clock, new StoreLog(this.log));
    const engine = new PodLimiter(
      {
        limits,
        podId,
        decisionTimeoutUs,
        keysMax,
        sole: coordinator === undefined,
        lanes: coordinator?.lanes ?? 1,
        commandTimeoutUs: redis?.commandTimeoutUs ?? decisionTimeoutUs,
      },
      clock.monotonicUs(),
    );
    return new ReconcileLoop({
      engine,
      limits,
      coordinator,
      clock,
      random: this.random,
      onFault: this.crash,
      onStoreCall: (outcome, error) => storeWatch.note(outcome, error),
      onReply: (took) => this.observed.reconcileDurations.observeUs(took),
    });
  }

  private createMembership(): Membership | undefined {
    const { coordinator, loop, random, clock } = this;
    if (coordinator === undefined) return undefined;
    const { membership } = this.config;
    const log = new MembershipSourceLog(this.log);
    const largeCosts = (): readonly string[] => loop.largeCosts();
    const parts = { coordinator, random, clock, log, listener: loop, largeCosts };
    return createMembership(membership, { ...membership, ...parts });
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
    const { config, live, loop, observed } = this;
    const [{ version }, { envoy }] = [this.io, this.doors];
    const { fleet, podId } = config;
    const identity = { version, fleet, podId, store: this.storeKind };
    const metrics = observed.metrics({
      figures: () => loop.figures(),
      config: () => live.standing(),
      forwardUnmatched: () => this.policies.unmatched,
      descriptors: () => ({ unmatched: envoy.unmatched, shown: envoy.shown.all() }),
      version,
    });
    observed.start(() => loop.counts());
    const handler = createOpsHandler({
      started: () => this.started.isSet,
      draining: () => this.stopAsked.isSet,
      identity: () => ({ ...identity, uptimeSeconds: process.uptime(), config: live.standing() }),
      engine: loop,
      observed,
      showKeys: () => this.config.ops.showKeys,
      keyDigest,
      metrics: (accept) => metrics.render(accept),
      onUnexpectedError: this.onFault,
    });
    return listenHttp(handler, { kind: "tcp", ...address }, {}, this.onFault);
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
