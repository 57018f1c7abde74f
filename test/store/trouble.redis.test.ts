import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { Redis } from "ioredis";
import { afterEach, describe, expect, it } from "vitest";
import type { Limit } from "../../src/core/limit.ts";
import { CoordinatorError } from "../../src/ports/coordinator.ts";
import { SystemClock } from "../../src/runtime/system-clock.ts";
import { type ConnectionChange, PENDING_MAX } from "../../src/store/redis/connection.ts";
import {
  createRedisCoordinator,
  type RedisCoordinator,
  type RedisCoordinatorOptions,
} from "../../src/store/redis/redis-coordinator.ts";
import { freePort } from "../support/free-port.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { LANES } from "./both-stores.ts";
import { accessTo, connected } from "./connected.ts";
import { batchOf, keysOfLane, limitOf, MS, replyOf } from "./pod.ts";

const LIMIT: Limit = limitOf({ name: "api" });
const [KEY = ""] = keysOfLane(0, LANES, 1);
const TERMS = { timeoutUs: 5_000 * MS, silentAfterUs: 2_500 * MS, largeCosts: [] };
const COMMAND_TIMEOUT_MS = 50;

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close();
});

async function server(args: readonly string[] = []): Promise<RedisServer> {
  const started = await startRedis({ args });
  open.push({ close: () => started.dispose() });
  return started;
}

function adminOf({ host, port }: RedisServer): Redis {
  const admin = new Redis(port, host);
  open.push({ close: async () => admin.disconnect() });
  return admin;
}

class Watched {
  readonly changes: ConnectionChange[] = [];
  private waiting: (() => void)[] = [];

  readonly onConnection = (change: ConnectionChange): void => {
    this.changes.push(change);
    for (const resolve of this.waiting.splice(0)) resolve();
  };

  /** Resolves when the connection has the state. */
  async until(up: boolean): Promise<void> {
    while (this.changes.at(-1)?.up !== up) {
      await new Promise<void>((resolve) => this.waiting.push(resolve));
    }
  }
}

function optionsFor(port: number, rest: Partial<RedisCoordinatorOptions> = {}) {
  return {
    ...accessTo({ host: "127.0.0.1", port } as RedisServer),
    commandTimeoutUs: COMMAND_TIMEOUT_MS * MS,
    fleet: "trouble",
    podId: "pod-a",
    incarnation: "a1",
    clock: new SystemClock(),
    ...rest,
  };
}

function started(port: number, rest: Partial<RedisCoordinatorOptions> = {}): RedisCoordinator {
  const coordinator = createRedisCoordinator(optionsFor(port, rest));
  open.push(coordinator);
  return coordinator;
}

async function up(port: number, rest: Partial<RedisCoordinatorOptions> = {}) {
  const coordinator = await connected(optionsFor(port, rest));
  open.push(coordinator);
  return coordinator;
}

const batch = (seq: number) =>
  batchOf([{ limit: LIMIT, key: KEY, fields: { consumed: 1, demand: 1 } }], { seq });

/** The kind of trouble that a call ended with, and how long it took. */
async function troubleOf(call: Promise<unknown>): Promise<{ kind: string; tookMs: number }> {
  const since = performance.now();
  const error = await call.then(
    () => new Error("the call succeeded"),
    (reason: unknown) => reason,
  );
  if (!(error instanceof CoordinatorError)) throw error;
  return { kind: error.kind, tookMs: performance.now() - since };
}

describe("O7 a Redis that is away", () => {
  it("refuses connections: calls fail at once as unreachable, and it is told once", async () => {
    const watched = new Watched();
    const pod = started(await freePort(), watched);
    await watched.until(false);
    const trouble = await troubleOf(pod.exchange(batch(1)));
    expect(trouble.kind).toBe("unreachable");
    expect(trouble.tookMs).toBeLessThan(20);
    expect(await troubleOf(pod.heartbeat(TERMS))).toMatchObject({ kind: "unreachable" });
    await new Promise((resolve) => setTimeout(resolve, 1_600)); // another attempt fails meanwhile
    expect(watched.changes).toHaveLength(1);
    expect(watched.changes[0]).toMatchObject({ up: false, reason: /ECONNREFUSED/ });
  });

  it("returns: the pod is back within 2 s, with one attempt a second", async () => {
    const watched = new Watched();
    const redis = await server();
    const pod = started(redis.port, watched);
    await watched.until(true);
    await redis.stop();
    await watched.until(false);
    await redis.start();
    const since = performance.now();
    await watched.until(true);
    expect(performance.now() - since).toBeLessThan(2_500);
    expect((await pod.exchange(batch(1))).duplicate).toBe(false);
    expect(watched.changes.map((change) => change.up)).toEqual([true, false, true]);
  });

  it("hangs: calls time out, then fail at once, and it comes back by itself", async () => {
    const watched = new Watched();
    const redis = await server();
    const pod = started(redis.port, watched);
    await watched.until(true);
    await pod.exchange(batch(1));
    redis.pause();
    const hanging = await troubleOf(pod.exchange(batch(2)));
    expect(hanging.kind).toBe("timeout");
    expect(hanging.tookMs).toBeGreaterThan(COMMAND_TIMEOUT_MS - 5);
    expect(hanging.tookMs).toBeLessThan(1_000);
    await watched.until(false);
    const refused = await troubleOf(pod.exchange(batch(2)));
    expect(refused.kind).toBe("unreachable");
    expect(refused.tookMs).toBeLessThan(20);
    redis.resume();
    await watched.until(true);
    // The first copy may lie in the connection that was cut; whichever comes first counts.
    await pod.exchange(batch(2));
    const third = await pod.exchange(batch(3));
    expect(third.previousSeq).toBe(2);
    expect(replyOf(third).level).toBeGreaterThan(LIMIT.burst - 4);
  });

  it("never holds more unanswered calls than the maximum", async () => {
    const redis = await server();
    const pod = await up(redis.port);
    redis.pause();
    const calls = Array.from({ length: PENDING_MAX + 10 }, (_, i) =>
      troubleOf(pod.exchange(batch(i + 1))),
    );
    const kinds = (await Promise.all(calls)).map(({ kind }) => kind);
    expect(kinds.slice(PENDING_MAX)).toEqual(Array(10).fill("unreachable"));
    expect(pod.calls).toBe(PENDING_MAX);
    redis.resume();
  });

  it("accepts connections and never says a word: it is down, not half up", async () => {
    const silent = await fakeServer(() => {});
    const watched = new Watched();
    const pod = started(silent.port, watched);
    await watched.until(false);
    expect(await troubleOf(pod.exchange(batch(1)))).toMatchObject({ kind: "unreachable" });
  });

  it("hangs while the pod closes: pending calls fail, and close resolves, also twice", async () => {
    const redis = await server();
    const pod = await up(redis.port);
    redis.pause();
    const pending = troubleOf(pod.exchange(batch(1)));
    await Promise.all([pod.close(), pod.close()]);
    expect(await pending).toMatchObject({ kind: "unreachable" });
    expect(await troubleOf(pod.heartbeat(TERMS))).toMatchObject({ kind: "unreachable" });
    redis.resume();
  });
});

describe("a Redis that answers with an error", () => {
  it("refuses as a replica, and the pod looks for the primary again", async () => {
    const redis = await server();
    const admin = adminOf(redis);
    const watched = new Watched();
    const pod = started(redis.port, watched);
    await watched.until(true);
    await pod.exchange(batch(1));
    await admin.call("REPLICAOF", "127.0.0.1", String(await freePort()));
    expect(await troubleOf(pod.exchange(batch(2)))).toMatchObject({ kind: "refused" });
    await watched.until(false);
    await admin.call("REPLICAOF", "NO", "ONE");
    await watched.until(true);
    const reply = await pod.exchange(batch(2));
    expect(reply).toMatchObject({ duplicate: false, previousSeq: 1 });
  });

  it("refuses without memory, applies nothing, and takes the same batch later", async () => {
    const redis = await server();
    const admin = adminOf(redis);
    const pod = await up(redis.port);
    await pod.exchange(batch(1));
    await admin.config("SET", "maxmemory", "1");
    expect(await troubleOf(pod.exchange(batch(2)))).toMatchObject({ kind: "refused" });
    await admin.config("SET", "maxmemory", "0");
    expect(await pod.exchange(batch(2))).toMatchObject({ duplicate: false, previousSeq: 1 });
  });

  it("refuses a user without the right to run scripts", async () => {
    const redis = await server();
    const admin = adminOf(redis);
    await admin.call(
      "ACL",
      "SETUSER",
      "limited",
      "on",
      ">secret",
      "~*",
      "+@all",
      "-eval",
      "-evalsha",
    );
    const password = { kind: "value" as const, value: "secret" };
    const pod = await up(redis.port, { username: "limited", password });
    expect(await troubleOf(pod.exchange(batch(1)))).toMatchObject({ kind: "refused" });
  });

  it("wants a password: it is down with the reason", async () => {
    const redis = await server(["--requirepass", "secret"]);
    const watched = new Watched();
    started(redis.port, watched);
    await watched.until(false);
    expect(watched.changes[0]).toMatchObject({ reason: /NOAUTH/ });
  });

  it("is busy with another script", async () => {
    const redis = await server(["--busy-reply-threshold", "20"]);
    const admin = adminOf(redis);
    const pod = await up(redis.port);
    await admin.ping();
    const loop = admin.eval("while true do end", 0).catch(() => {});
    const ends: string[] = [];
    while (ends.at(-1) !== "refused" && ends.length < 100) {
      const end = await pod.exchange(batch(1)).then(
        () => "answered", // before the other script began
        (error: CoordinatorError) => error.kind,
      );
      ends.push(end);
    }
    expect(ends.at(-1)).toBe("refused");
    const killer = new Redis(redis.port, redis.host, { enableReadyCheck: false });
    await killer.script("KILL");
    killer.disconnect();
    await loop;
  });
});

describe("a server that is no Redis of ours", () => {
  it.each([
    { what: "too few bytes", answer: "$5\r\nhello\r\n" },
    { what: "a number", answer: ":7\r\n" },
    { what: "a list", answer: "*1\r\n$1\r\nx\r\n" },
    { what: "nothing", answer: "$-1\r\n" },
    { what: "numbers that are none", answer: `$120\r\n${"\xff".repeat(120)}\r\n` },
    { what: "zeros", answer: `$120\r\n${"\0".repeat(120)}\r\n` },
  ])("answers with $what: malformed", async ({ answer }) => {
    const fake = await fakeServer((socket, request) => {
      if (request.includes("eval")) socket.write(Buffer.from(answer, "latin1"));
      else socket.write("$2\r\n#x\r\n".repeat(request.split("*").length - 1));
    });
    const pod = await up(fake.port);
    expect(await troubleOf(pod.exchange(batch(1)))).toMatchObject({ kind: "malformed" });
    expect(await troubleOf(pod.heartbeat(TERMS))).toMatchObject({ kind: "malformed" });
  });
});

async function fakeServer(
  onRequest: (socket: Socket, request: string) => void,
): Promise<{ port: number }> {
  const sockets = new Set<Socket>();
  const fake: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("data", (data) => onRequest(socket, data.toString("latin1")));
  });
  await new Promise<void>((resolve) => fake.listen(0, "127.0.0.1", resolve));
  open.push({
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => fake.close(resolve));
    },
  });
  return { port: (fake.address() as AddressInfo).port };
}
