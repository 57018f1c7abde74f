/**
 * One client, and what a limiter wants of it on top: every call ends within a bounded time, a
 * server that hangs looks like one that refuses, and the number of unanswered calls is bounded.
 *
 * States: `up` from when the server has told who it is until "close"; `down` from then on, and
 * from the first failed attempt. A change is told once. A half-open connection (packets dropped,
 * server stopped) never closes by itself: when the oldest unanswered call is a second old, or the
 * handshake is, the connection is cut and made anew, at most once a second.
 */
import { performance } from "node:perf_hooks";
import { Cluster, type Redis } from "ioredis";
import { type DurationUs, US_PER_MS } from "../../core/units.ts";
import { CoordinatorError } from "../../ports/coordinator.ts";
import type { Random } from "../../ports/random.ts";
import {
  CONNECT_TIMEOUT_MS,
  createClient,
  NOT_PRIMARY,
  type RedisAccess,
  type RedisClient,
} from "./client.ts";
import { loadScript, SCRIPT_NAMES, SCRIPTS, type ScriptName } from "./scripts.ts";
import { type SentinelWatch, watchSentinels } from "./sentinel-watch.ts";
import { askServer, evictionsOf } from "./server-run.ts";
import { classify, messageOf } from "./trouble.ts";

/** Unanswered calls; beyond it a call fails at once. Sixteen for each lane of a single server. */
export const PENDING_MAX = 256;
/** Two attempts to connect are at least this far apart. */
const RECONNECT_MS = 1_000;
/** Pods that lost one server must not come back in one instant. */
const RECONNECT_JITTER_MS = 400;
/** An unanswered call this old means that the connection is dead. */
const DEAD_AFTER_MS = 1_000;
const WATCH_MS = 200;
/** A watch this late means that this process stood still; replies may lie unread. */
const STALL_MS = 300;
/** A reply may take this many times the slowest recent one. */
const PATIENCE = 4;
const SLOWEST_KEPT = 0.98;
const CLOSE_WAIT_MS = 500;

export type ConnectionChange =
  | { readonly up: true }
  | { readonly up: false; readonly reason: string };

export interface RedisConnectionOptions {
  readonly access: RedisAccess;
  readonly commandTimeoutUs: DurationUs;
  readonly random: Random;
  readonly onConnection: (change: ConnectionChange) => void;
  /** The server evicts by this policy when it is full; told after each connect. */
  readonly onEviction: (policy: string) => void;
}

interface Call {
  readonly sentAtMs: number;
  readonly fail: (error: CoordinatorError) => void;
}

type Command = (...args: (number | string | Buffer)[]) => Promise<unknown>;

export class RedisConnection {
  /** Calls sent so far. */
  calls = 0;
  /** Number of the server process that is connected; see `server-run.ts`. */
  serverRun = 0;
  private readonly options: RedisConnectionOptions;
  private readonly client: RedisClient;
  private readonly commandTimeoutMs: number;
  private readonly sentinels: SentinelWatch | undefined;
  private readonly watch: NodeJS.Timeout;
  /** Oldest first. */
  private readonly pending = new Set<Call>();
  private up: boolean | undefined;
  private lastError = "not connected yet";
  private attemptedAtMs = Number.NEGATIVE_INFINITY;
  private handshakeSinceMs: number | undefined;
  private watchedAtMs = performance.now();
  private slowestMs = 0;
  private closed = false;
  /**
   * Connections begun and ended, so that an answer of an earlier one is not taken for this one's.
   */
  private greetings = 0;

  constructor(options: RedisConnectionOptions) {
    this.options = options;
    this.commandTimeoutMs = options.commandTimeoutUs / US_PER_MS;
    this.attemptedAtMs = performance.now();
    this.client = createClient(options.access, {
      delayMs: () => this.retryDelayMs(),
      isClosed: () => this.closed,
    });
    this.sentinels = watchSentinels(options.access, () => this.leave("the primary was replaced"));
    for (const name of SCRIPT_NAMES) {
      this.client.defineCommand(commandName(name), { lua: loadScript(SCRIPTS[name].file) });
    }
    this.listen();
    this.watch = setInterval(() => this.look(), WATCH_MS);
    this.watch.unref();
  }

  /**
   * Runs a script once and resolves with its raw reply.
   *
   * @param waitMs - How long to wait for an answer; when left out the command timeout, or four
   *   times the slowest recent reply if that is longer.
   * @throws {CoordinatorError} `unreachable` at once without a connection; `timeout` when no answer
   *   came in time.
   */
  run(
    script: ScriptName,
    keys: readonly string[],
    args: readonly (string | Buffer)[],
    waitMs?: number,
  ): Promise<unknown> {
    const obstacle = this.obstacle();
    if (obstacle !== undefined) {
      return Promise.reject(new CoordinatorError("unreachable", obstacle));
    }
    this.calls += 1;
    return new Promise((resolve, reject) => {
      const call: Call = { sentAtMs: performance.now(), fail: reject };
      this.pending.add(call);
      const patienceMs = waitMs ?? this.patienceMs();
      const giveUp = (): void => {
        const after = Math.round(performance.now() - call.sentAtMs);
        reject(new CoordinatorError("timeout", `no answer to ${script} within ${after} ms`));
      };
      // Timers run before what the network brought: after a stall, the reply gets its turn first.
      const timer = setTimeout(() => setImmediate(giveUp), patienceMs);
      const end = (): void => {
        clearTimeout(timer);
        this.pending.delete(call);
      };
      this.command(script)(keys.length, ...keys, ...args).then(
        (reply) => {
          end();
          this.answered(call);
          resolve(reply);
        },
        (error: unknown) => {
          end();
          const trouble = classify(error);
          // The client leaves such a server, and this is why.
          if (NOT_PRIMARY.test(trouble.message)) this.lastError = trouble.message;
          reject(trouble);
        },
      );
    });
  }

  /** Ends the connection; unanswered calls fail. Safe to call twice. */
  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    clearInterval(this.watch);
    this.sentinels?.close();
    for (const call of this.pending) {
      call.fail(new CoordinatorError("unreachable", "the connection was closed"));
    }
    if (this.client.status === "end") return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, CLOSE_WAIT_MS);
      this.client.once("end", () => {
        clearTimeout(timer);
        resolve();
      });
      this.client.disconnect();
    });
  }

  private obstacle(): string | undefined {
    if (this.closed) return "the connection was closed";
    if (this.client.status !== "ready" || this.up !== true) {
      return `no connection to Redis: ${this.lastError}`;
    }
    if (this.pending.size >= PENDING_MAX) return `${PENDING_MAX} calls to Redis are unanswered`;
    return undefined;
  }

  private command(script: ScriptName): Command {
    const commands = this.client as unknown as Record<string, Command>;
    const command = commands[`${commandName(script)}Buffer`];
    if (command === undefined) throw new Error(`the script ${script} was not defined`);
    return command.bind(this.client);
  }

  private answered(call: Call): void {
    const tookMs = performance.now() - call.sentAtMs;
    this.slowestMs = Math.max(tookMs, this.slowestMs * SLOWEST_KEPT);
  }

  private patienceMs(): number {
    const longest = Math.max(this.commandTimeoutMs, DEAD_AFTER_MS);
    return Math.min(longest, Math.max(this.commandTimeoutMs, PATIENCE * this.slowestMs));
  }

  private retryDelayMs(): number {
    const now = performance.now();
    const delayMs =
      Math.max(0, this.attemptedAtMs + RECONNECT_MS - now) +
      RECONNECT_JITTER_MS * this.options.random.draw();
    this.attemptedAtMs = now + delayMs;
    return delayMs;
  }

  private listen(): void {
    const client: Redis | Cluster = this.client;
    client.on("error", (error: unknown) => {
      this.lastError = messageOf(error);
    });
    client.on("node error", (error: unknown) => {
      this.lastError = messageOf(error);
    });
    client.on("connect", () => {
      this.handshakeSinceMs = performance.now();
    });
    client.on("ready", () => void this.greet());
    // "end" alone: no connection could be begun.
    for (const event of ["close", "end"]) {
      client.on(event, () => {
        this.greetings += 1;
        this.handshakeSinceMs = undefined;
        this.tell({ up: false, reason: this.lastError });
      });
    }
  }

  /** Gives up the connection that there is, for a new one. */
  private leave(reason: string): void {
    this.lastError = reason;
    // While it is being made there is nothing to leave, and the client would not try again.
    if (/^(?:ready|connect)$/.test(this.client.status)) this.client.disconnect(true);
  }

  /** Learns who answers before anything is asked: strict limits must know of a failover at once. */
  private async greet(): Promise<void> {
    this.greetings += 1;
    const greeting = this.greetings;
    const { run, eviction } = await askServer(this.client);
    if (greeting !== this.greetings) return;
    this.serverRun = run;
    this.handshakeSinceMs = undefined;
    this.tell({ up: true });
    if (eviction !== undefined) this.options.onEviction(eviction);
    if (this.client instanceof Cluster) {
      for (const policy of await evictionsOf(this.client)) this.options.onEviction(policy);
    }
  }

  private tell(change: ConnectionChange): void {
    if (change.up) this.lastError = "the connection was lost";
    if (this.closed || this.up === change.up) return;
    this.up = change.up;
    this.options.onConnection(change);
  }

  private look(): void {
    const now = performance.now();
    const stalled = now - this.watchedAtMs > WATCH_MS + STALL_MS;
    this.watchedAtMs = now;
    // Nodes of a cluster watch themselves (socketTimeout): which one a call went to is not known.
    if (stalled || this.client instanceof Cluster) return;
    const [oldest] = this.pending;
    const waitingSince = Math.min(oldest?.sentAtMs ?? now, this.handshakeSinceMs ?? now);
    if (now - waitingSince < Math.max(DEAD_AFTER_MS, this.commandTimeoutMs)) return;
    this.leave(`no answer for ${CONNECT_TIMEOUT_MS} ms`);
  }
}

function commandName(script: ScriptName): string {
  return `aliquot_${script}`;
}
