import { EventEmitter } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Http2Session, type ServerHttp2Stream } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { IdleSessions } from "../../src/server/grpc/idle-sessions.ts";
import { openSession } from "./raw-call.ts";

const TIMEOUT_MS = 300_000;

class FakeSession extends EventEmitter {
  isClosing = false;

  close(): void {
    this.isClosing = true;
  }
}

class FakeStream extends EventEmitter {
  readonly session: FakeSession;

  constructor(session: FakeSession) {
    super();
    this.session = session;
  }
}

describe("a connection over which nobody calls", () => {
  let idle: IdleSessions;
  let session: FakeSession;

  beforeEach(() => {
    vi.useFakeTimers();
    idle = new IdleSessions(TIMEOUT_MS);
    session = new FakeSession();
    idle.add(session as unknown as Http2Session);
  });

  afterEach(() => {
    idle.stop();
    vi.useRealTimers();
  });

  const call = (isShort: boolean): FakeStream => {
    const stream = new FakeStream(session);
    idle.called(stream as unknown as ServerHttp2Stream, isShort);
    return stream;
  };

  it("is closed after the timeout and not before", () => {
    vi.advanceTimersByTime(TIMEOUT_MS);
    expect(session.isClosing).toBe(false);
    vi.advanceTimersByTime(0.2 * TIMEOUT_MS + 1);
    expect(session.isClosing).toBe(true);
  });

  it("has its time again with every call", () => {
    for (let i = 0; i < 10; i += 1) {
      vi.advanceTimersByTime(0.9 * TIMEOUT_MS);
      call(true);
    }
    vi.advanceTimersByTime(TIMEOUT_MS);
    expect(session.isClosing).toBe(false);
    vi.advanceTimersByTime(0.2 * TIMEOUT_MS + 1);
    expect(session.isClosing).toBe(true);
  });

  it("stays when a call came that was read after the look only", () => {
    vi.advanceTimersByTime(1.2 * TIMEOUT_MS);
    call(true);
    vi.advanceTimersByTime(1);
    expect(session.isClosing).toBe(false);
  });

  it("is not idle while a call that may last is open, and has its time after it", () => {
    const [first, second] = [call(false), call(false)];
    vi.advanceTimersByTime(10 * TIMEOUT_MS);
    first.emit("close");
    vi.advanceTimersByTime(10 * TIMEOUT_MS);
    expect(session.isClosing).toBe(false);
    second.emit("close");
    vi.advanceTimersByTime(TIMEOUT_MS);
    expect(session.isClosing).toBe(false);
    vi.advanceTimersByTime(0.2 * TIMEOUT_MS + 1);
    expect(session.isClosing).toBe(true);
  });

  it("is forgotten when it ends", () => {
    session.emit("close");
    call(false);
    vi.advanceTimersByTime(2 * TIMEOUT_MS);
    expect(session.isClosing).toBe(false);
  });
});

describe("a real HTTP/2 connection", () => {
  it("ends when it is idle", async () => {
    const folder = mkdtempSync(join(tmpdir(), "aliquot-idle-"));
    const idle = new IdleSessions(50);
    const server = createServer().on("session", (session) => idle.add(session));
    const path = join(folder, "socket");
    await new Promise<void>((resolve) => server.listen(path, resolve));
    const session = openSession(path);
    await new Promise((resolve) => session.once("close", resolve));
    idle.stop();
    await new Promise((resolve) => server.close(resolve));
    rmSync(folder, { recursive: true, force: true });
  });
});
