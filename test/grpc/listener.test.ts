import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { connect as connectSocket, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, credentials, type ServiceError, status } from "@grpc/grpc-js";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { listenGrpc } from "../../src/server/grpc/grpc-listener.ts";
import type { HttpListener, ListenAddress } from "../../src/server/listener.ts";
import { encodeRequest, packages } from "./protobuf-js.ts";
import {
  call,
  closeDoors,
  codes,
  connect,
  openDoor,
  type RateLimitDoor,
  request,
} from "./rate-limit-door.ts";

const RULES =
  "domain: d\ndescriptors: [{ key: a, rate_limit: { unit: day, requests_per_unit: 9 } }]";
const SERVICE = "envoy.service.ratelimit.v3.RateLimitService";
const PATH = `/${SERVICE}/ShouldRateLimit`;

const folders: string[] = [];
const listeners: HttpListener[] = [];

afterEach(async () => {
  await closeDoors();
  await Promise.all(listeners.splice(0).map((listener) => listener.stop(500)));
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function newSocket(): string {
  const folder = mkdtempSync(join(tmpdir(), "aliquot-grpc-"));
  folders.push(folder);
  return join(folder, "grpc.sock");
}

/** A second listener with the service of a door. */
async function listen(door: RateLimitDoor, address: ListenAddress): Promise<HttpListener> {
  const listener = await listenGrpc(
    {
      service: door.service,
      clock: { monotonicUs: () => 0 },
      observeUs: () => {},
      onUnexpectedError: (error) => door.faults.push(error),
    },
    address,
  );
  listeners.push(listener);
  return listener;
}

describe("O22 the gRPC socket", () => {
  it("has the mode that was asked for from the moment it is there", async () => {
    const door = await openDoor(RULES);
    expect(statSync(door.socket).mode & 0o777).toBe(0o660);
    expect(readdirSync(join(door.socket, ".."))).toEqual(["grpc.sock"]);
  });

  it("takes the place of one that a crash left", async () => {
    const door = await openDoor(RULES);
    const path = newSocket();
    const stale = createServer().listen(`${path}.tmp`);
    await new Promise((resolve) => stale.once("listening", resolve));
    // Renamed, so that closing the server cannot remove it: what is left is a socket of nobody.
    const { renameSync } = await import("node:fs");
    renameSync(`${path}.tmp`, path);
    await new Promise((resolve) => stale.close(resolve));
    expect(statSync(path).isSocket()).toBe(true);
    await listen(door, { kind: "unix", path, mode: 0o600 });
    const client = connect(path);
    expect(codes(await call(client, request("a=1")))).toBe("OK: OK 8");
    client.close();
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it("is left to a live process, and so is any other kind of file", async () => {
    const door = await openDoor(RULES);
    const address: ListenAddress = { kind: "unix", path: door.socket, mode: 0o660 };
    await expect(listen(door, address)).rejects.toThrow(
      `another process answers on the socket ${door.socket}; it was left as it is`,
    );
    expect(codes(await door.ask(request("a=1")))).toBe("OK: OK 8");
    const path = newSocket();
    writeFileSync(path, "precious");
    await expect(listen(door, { kind: "unix", path, mode: 0o660 })).rejects.toThrow(
      `${path} is a regular file, not a socket`,
    );
  });

  it("is gone after a stop, at which calls in flight are still answered", async () => {
    const door = await openDoor(RULES);
    let release = (): void => {};
    door.decider.hold = () =>
      new Promise((resolve) => {
        release = resolve;
      });
    const inFlight = door.ask(request("a=1"));
    while (door.decider.decided === 0) await new Promise((resolve) => setImmediate(resolve));
    const stopped = door.listener.stop(5_000);
    expect(existsSync(door.socket)).toBe(false);
    release();
    expect(codes(await inFlight)).toBe("OK: OK 8");
    await stopped;
    expect((await door.refusal(request("a=1"))).code).toBe(status.UNAVAILABLE);
  });

  it("stops in time although a call is never answered", async () => {
    const door = await openDoor(RULES);
    door.decider.hold = () => new Promise(() => {});
    const refused = door.refusal(request("a=1"));
    while (door.decider.decided === 0) await new Promise((resolve) => setImmediate(resolve));
    await door.listener.stop(50);
    expect([status.CANCELLED, status.UNAVAILABLE]).toContain((await refused).code);
  });

  it("has a twin on loopback TCP when asked for", async () => {
    const door = await openDoor(RULES);
    const { address } = await listen(door, { kind: "tcp", host: "127.0.0.1", port: 0 });
    const { RateLimitService } = packages.envoy.service.ratelimit.v3;
    const client = new RateLimitService(address, credentials.createInsecure());
    expect(codes(await call(client, request("a=1")))).toBe("OK: OK 8");
    client.close();
  });
});

describe("gRPC health", () => {
  type Health = { check: Ask; watch: Watch };
  type Ask = (
    request: { service: string },
    done: (error: ServiceError | null, answer?: { status: number }) => void,
  ) => void;
  type Watch = (request: { service: string }) => AsyncIterable<{ status: number }> & {
    cancel(): void;
  };
  const clients: Client[] = [];
  const healthOf = (socket: string): Health => {
    const { Health } = packages.grpc.health.v1;
    const client = new Health(`unix://${socket}`, credentials.createInsecure());
    clients.push(client);
    return client as unknown as Health;
  };
  const check = (health: Health, service: string): Promise<number> =>
    new Promise((resolve, reject) => {
      health.check({ service }, (error, answer) =>
        error === null && answer !== undefined ? resolve(answer.status) : reject(error),
      );
    });

  afterEach(() => {
    for (const client of clients.splice(0)) client.close();
  });

  it("serves for the server and its service, and knows no other", async () => {
    const health = healthOf((await openDoor(RULES)).socket);
    expect(await check(health, "")).toBe(1);
    expect(await check(health, SERVICE)).toBe(1);
    await expect(check(health, "other")).rejects.toMatchObject({ code: status.NOT_FOUND });
  });

  it("tells those who watch when the server stops, and lets them go", async () => {
    const door = await openDoor(RULES);
    const health = healthOf(door.socket);
    const seen: number[] = [];
    const watching = (async () => {
      for await (const answer of health.watch({ service: "" })) {
        seen.push(answer.status);
        if (seen.length === 1) void door.listener.stop(5_000);
      }
    })();
    await watching;
    expect(seen).toEqual([1, 2]);
  });

  it("keeps watchers of an unknown service without an answer but that", async () => {
    const door = await openDoor(RULES);
    const stream = healthOf(door.socket).watch({ service: "other" });
    for await (const answer of stream) {
      expect(answer.status).toBe(3);
      break;
    }
    stream.cancel();
  });
});

describe("what is no proper call", () => {
  /** One raw unary call: HTTP/2 status, gRPC status, and the bytes that came. */
  function raw(
    socket: string,
    bodies: readonly Uint8Array[],
    path = PATH,
  ): Promise<{ grpcStatus: number; body: Buffer }[]> {
    const session = connectHttp2("http://localhost", {
      createConnection: () => connectSocket(socket),
    });
    const one = (body: Uint8Array): Promise<{ grpcStatus: number; body: Buffer }> =>
      new Promise((resolve, reject) => {
        const stream = session.request({
          ":method": "POST",
          ":path": path,
          "content-type": "application/grpc",
          te: "trailers",
        });
        const chunks: Buffer[] = [];
        let grpcStatus = Number.NaN;
        const note = (headers: Record<string, unknown>): void => {
          if (headers["grpc-status"] !== undefined) grpcStatus = Number(headers["grpc-status"]);
        };
        stream.on("response", note);
        stream.on("trailers", note);
        stream.on("data", (chunk: Buffer) => chunks.push(chunk));
        stream.on("end", () => resolve({ grpcStatus, body: Buffer.concat(chunks) }));
        stream.on("error", reject);
        stream.end(body);
      });
    return Promise.all(bodies.map(one)).finally(() => session.destroy());
  }

  const framed = (message: Uint8Array): Buffer => {
    const head = Buffer.alloc(5);
    head.writeUInt32BE(message.length, 1);
    return Buffer.concat([head, message]);
  };

  it("is INVALID_ARGUMENT for bytes that are no message", async () => {
    const door = await openDoor(RULES);
    const [answer] = await raw(door.socket, [framed(Buffer.from("ffff", "hex"))]);
    expect(answer?.grpcStatus).toBe(status.INVALID_ARGUMENT);
  });

  it("is RESOURCE_EXHAUSTED for a message over the maximum", async () => {
    const door = await openDoor(RULES);
    const [answer] = await raw(door.socket, [framed(Buffer.alloc(65_537))]);
    expect(answer?.grpcStatus).toBe(status.RESOURCE_EXHAUSTED);
  });

  it("is UNIMPLEMENTED for another method", async () => {
    const door = await openDoor(RULES);
    const [answer] = await raw(door.socket, [framed(Buffer.alloc(0))], `/${SERVICE}/Other`);
    expect(answer?.grpcStatus).toBe(status.UNIMPLEMENTED);
  });

  it("never crashes, hangs or debits, whatever the bytes: thousands of them", async () => {
    const door = await openDoor(RULES);
    const valid = encodeRequest(request("a=1"));
    const broken = fc.tuple(fc.nat(), fc.integer({ min: 1, max: 255 })).map(([at, by]) => {
      const bytes = Buffer.from(valid);
      const index = at % bytes.length;
      bytes[index] = (bytes[index] as number) ^ by;
      return framed(bytes);
    });
    const bodies = fc.oneof(
      fc.uint8Array({ maxLength: 64 }).map(framed),
      fc.uint8Array({ maxLength: 64 }),
      broken,
    );
    const batches = fc.sample(fc.array(bodies, { minLength: 100, maxLength: 100 }), 40);
    const seen = new Map<number, number>();
    for (const batch of batches) {
      for (const { grpcStatus } of await raw(door.socket, batch)) {
        seen.set(grpcStatus, (seen.get(grpcStatus) ?? 0) + 1);
      }
    }
    expect(door.faults).toEqual([]);
    expect(seen.get(status.INVALID_ARGUMENT)).toBeGreaterThan(500);
    expect(seen.has(status.UNKNOWN)).toBe(false);
    expect(seen.has(status.UNAVAILABLE)).toBe(false);
    // Only a byte of an answered call may have been spent, and never for another key's rule.
    const answered = seen.get(status.OK) ?? 0;
    const { tally } = door.decider.sole.engine.figures(0).limits[0] as {
      tally: { tokens: Float64Array };
    };
    expect(tally.tokens[0]).toBeLessThanOrEqual(answered);
    expect((await door.ask(request("a=fresh"))).statuses[0]?.limitRemaining).toBe(8);
  }, 60_000);

  it("leaves other connections alone when one speaks no HTTP/2", async () => {
    const door = await openDoor(RULES);
    const stranger = connectSocket(door.socket);
    stranger.on("error", () => {}).resume();
    stranger.write("GET / HTTP/1.1\r\n\r\n");
    await new Promise((resolve) => stranger.once("close", resolve));
    expect(codes(await door.ask(request("a=1")))).toBe("OK: OK 8");
    expect(door.faults).toEqual([]);
  });
});
