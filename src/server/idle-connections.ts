/**
 * Closing connections over which nothing has gone for a while.
 *
 * Node would arm a timer after every answer and disarm it with every request, which is a noticeable
 * part of what a small answer costs. Here all connections of a listener are looked at now and
 * then: one whose counts of bytes stand still is idle.
 *
 * The look is a timer, and timers run before anything is read. After a moment in which the process
 * did not run, the next request may lie in the kernel; so what looks idle is closed when the turn
 * of the event loop has read, if nothing has come.
 */
import type { Socket } from "node:net";

/** How often connections are looked at: this part of the timeout, and no more than ... ms apart. */
const LOOKS_PER_TIMEOUT = 8;
const LOOK_EVERY_MAX_MS = 5_000;
const LOOK_EVERY_MIN_MS = 10;

interface Seen {
  bytes: number;
  atMs: number;
}

export class IdleConnections {
  readonly #timeoutMs: number;
  readonly #seen = new Map<Socket, Seen>();
  readonly #timer: NodeJS.Timeout;

  /** @param timeoutMs - No connection is closed earlier; some later, by one look. */
  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
    const everyMs = Math.min(LOOK_EVERY_MAX_MS, timeoutMs / LOOKS_PER_TIMEOUT);
    this.#timer = setInterval(() => this.#look(), Math.max(LOOK_EVERY_MIN_MS, everyMs));
    this.#timer.unref();
  }

  add(socket: Socket): void {
    this.#seen.set(socket, { bytes: 0, atMs: performance.now() });
    socket.once("close", () => this.#seen.delete(socket));
  }

  /** Every open connection. */
  sockets(): Iterable<Socket> {
    return this.#seen.keys();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const nowMs = performance.now();
    const idle: Socket[] = [];
    for (const [socket, seen] of this.#seen) {
      const bytes = bytesOver(socket);
      if (bytes !== seen.bytes) {
        seen.bytes = bytes;
        seen.atMs = nowMs;
      } else if (nowMs - seen.atMs >= this.#timeoutMs) {
        idle.push(socket);
      }
    }
    if (idle.length > 0) setImmediate(() => this.#close(idle));
  }

  #close(idle: readonly Socket[]): void {
    for (const socket of idle) {
      if (bytesOver(socket) === this.#seen.get(socket)?.bytes) socket.destroy();
    }
  }
}

function bytesOver(socket: Socket): number {
  return socket.bytesRead + socket.bytesWritten;
}
