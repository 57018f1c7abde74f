import { mkdtempSync, rmSync } from "node:fs";
import type { ClientHttp2Session } from "node:http2";
import { createServer, type Server as NetServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { Server, ServerCredentials, type sendUnaryData, status } from "@grpc/grpc-js";
import { afterEach, describe, expect, it } from "vitest";
import { until } from "../../fleet/until.ts";
import { answerDirectly } from "../../src/server/grpc/direct-calls.ts";
import { IdleSessions } from "../../src/server/grpc/idle-sessions.ts";
import type { RateLimitCalls } from "../../src/server/grpc/rate-limit-calls.ts";
import { encodeRequest } from "./protobuf-js.ts";
import { closeDoors, openDoor, request } from "./rate-limit-door.ts";
import { callRaw, framed, openSession, PATH, type RawAnswer, type RawCall } from "./raw-call.ts";

const RULES =
  "domain: d\ndescriptors: [{ key: a, rate_limit: { unit: day, requests_per_unit: 9 } }]";

const sessions: ClientHttp2Session[] = [];
const cleanups: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const session of sessions.splice(0)) session.destroy();
  for (const cleanup of cleanups.splice(0)) await cleanup();
  await closeDoors();
});

function sessionWith(socket: string): ClientHttp2Session {
  const session = openSession(socket);
  sessions.push(session);
  return session;
}

/** Splits a message in two, which makes a call go the long way. */
function inTwo(frame: Buffer): Buffer[] {
  return [frame.subarray(0, 7), frame.subarray(7)];
}

describe("an ordinary call", () => {
  const hello = Buffer.from("hello");
  const direct = Buffer.from("direct");

  /** A server that tells in its answers which way a call went. */
  async function openBothWays(): Promise<ClientHttp2Session> {
    const folder = mkdtempSync(join(tmpdir(), "aliquot-direct-"));
    const grpc = new Server({ "grpc.max_receive_message_length": 100 });
    const bytes = (message: Buffer): Buffer => message;
    const method = { path: PATH, requestStream: false as const, responseStream: false as const };
    const codec = { requestSerialize: bytes, requestDeserialize: bytes };
    const more = { responseSerialize: bytes, responseDeserialize: bytes };
    grpc.addService(
      { call: { ...method, ...codec, ...more } },
      {
        call: ({ request: got }: { request: Buffer }, done: sendUnaryData<Buffer>) =>
          done(null, Buffer.concat([Buffer.from("long "), got])),
      },
    );
    const injector = grpc.createConnectionInjector(ServerCredentials.createInsecure());
    const idle = new IdleSessions(60_000);
    const calls = { answer: () => framed(direct) } as unknown as RateLimitCalls;
    answerDirectly(grpc, { calls, path: PATH, messageBytesMax: 100, idle });
    const server = createServer((socket) =>
      injector.injectConnection(socket.on("error", () => {})),
    );
    const path = join(folder, "grpc.sock");
    await listening(server, path);
    cleanups.push(async () => {
      idle.stop();
      server.close();
      grpc.forceShutdown();
      rmSync(folder, { recursive: true, force: true });
    });
    return sessionWith(path);
  }

  const wayOf = async (session: ClientHttp2Session, call: RawCall): Promise<string> => {
    const { headers, trailers, body } = await callRaw(session, call);
    if (body !== "") return Buffer.from(body, "hex").subarray(5).toString();
    return `status ${(trailers ?? headers)["grpc-status"]}`;
  };

  it("is answered without grpc-js", async () => {
    const session = await openBothWays();
    expect(await wayOf(session, { parts: [framed(hello)] })).toBe("direct");
    expect(await wayOf(session, { parts: [framed(Buffer.alloc(100))] })).toBe("direct");
    const usual = { "grpc-timeout": "20m", "grpc-encoding": "identity", "x-request-id": "1" };
    expect(await wayOf(session, { headers: usual, parts: [framed(hello)] })).toBe("direct");
  });

  it.each<[string, RawCall]>([
    ["is in parts", { parts: inTwo(framed(hello)) }],
    [
      "begins with a part of its head",
      { parts: [framed(hello).subarray(0, 3), framed(hello).subarray(3)] },
    ],
    [
      "is compressed",
      { headers: { "grpc-encoding": "gzip" }, parts: [framed(gzipSync(hello), 1)] },
    ],
  ])("is left to grpc-js when its message %s", async (_what, call) => {
    expect(await wayOf(await openBothWays(), call)).toBe("long hello");
  });

  it.each<[string, RawCall, number]>([
    ["too large a message", { parts: [framed(Buffer.alloc(101))] }, status.RESOURCE_EXHAUSTED],
    ["two messages", { parts: [framed(hello), framed(hello)] }, status.UNIMPLEMENTED],
    [
      "two messages in one piece",
      { parts: [Buffer.concat([framed(hello), framed(hello)])] },
      status.UNIMPLEMENTED,
    ],
    ["no message", { parts: [] }, status.UNIMPLEMENTED],
    ["half a message", { parts: [framed(hello).subarray(0, 7)] }, status.UNIMPLEMENTED],
    [
      "a timeout that is none",
      { headers: { "grpc-timeout": "soon" }, parts: [framed(hello)] },
      status.INTERNAL,
    ],
    [
      "an encoding that nobody knows",
      { headers: { "grpc-encoding": "br" }, parts: [framed(hello, 1)] },
      status.UNIMPLEMENTED,
    ],
  ])("is refused with %s", async (_what, call, code) => {
    expect(await wayOf(await openBothWays(), call)).toBe(`status ${code}`);
  });
});

async function listening(server: NetServer, path: string): Promise<void> {
  await new Promise<void>((resolve) => server.listen(path, resolve));
}

describe("the two ways of a call", () => {
  /** The same call the short way and the long way, each for a key of its own. */
  async function bothWays(text: (key: string) => Buffer): Promise<[RawAnswer, RawAnswer]> {
    const { socket } = await openDoor(RULES);
    const session = sessionWith(socket);
    const [short, long] = [framed(text("short")), framed(text("other"))];
    return [
      await callRaw(session, { parts: [short] }),
      await callRaw(session, { parts: inTwo(long) }),
    ];
  }

  it("put the same bytes on the wire", async () => {
    const [short, long] = await bothWays((key) => encodeRequest(request(`a=${key}`)));
    expect(short.headers[":status"]).toBe(200);
    expect(short.trailers).toMatchObject({ "grpc-status": "0" });
    expect(short.body.length).toBeGreaterThan(100);
    expect(short).toEqual(long);
  });

  it("refuse in the same way", async () => {
    const [short, long] = await bothWays(() => encodeRequest({ ...request("a=b"), domain: "" }));
    expect(short.headers["grpc-status"]).toBe(String(status.INVALID_ARGUMENT));
    expect(short.headers["grpc-message"]).toBe("domain%20must%20not%20be%20empty");
    expect(short).toEqual(long);
  });
});

describe("a caller that gives up", () => {
  it("does not disturb the others when its answer comes", async () => {
    const door = await openDoor(RULES);
    let release = (): void => {};
    door.decider.hold = () =>
      new Promise((resolve) => {
        release = resolve;
      });
    const session = sessionWith(door.socket);
    const message = framed(encodeRequest(request("a=1")));
    const stream = session.request({
      ":method": "POST",
      ":path": PATH,
      "content-type": "application/grpc",
      te: "trailers",
    });
    const closed = new Promise((resolve) => stream.on("error", () => {}).once("close", resolve));
    stream.end(message);
    await until("the check is held", 10_000, () => door.decider.decided === 1);
    stream.close(8);
    await closed;
    door.decider.hold = undefined;
    // Answered behind the cancellation, on the same connection.
    const next = await callRaw(session, { parts: [message] });
    release();
    const last = await callRaw(session, { parts: [message] });
    expect([next.trailers?.["grpc-status"], last.trailers?.["grpc-status"]]).toEqual(["0", "0"]);
    expect(door.faults).toEqual([]);
  });
});
