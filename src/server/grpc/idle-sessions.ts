/**
 * Closes HTTP/2 connections over which nobody has called for a while: probes that connect and
 * never return would otherwise pile up. grpc-js has such a timeout as well, but knows only of the
 * calls that it answers itself, and arms a timer after each.
 *
 * All connections are looked at now and then; a call leaves the number of looks so far, which is
 * cheaper to have than the time. What looks idle is closed when the turn of the event loop has
 * read, if no call has come: the look is a timer, and after a moment in which the process did not
 * run, timers run before anything is read.
 */
import type { Http2Session, ServerHttp2Stream } from "node:http2";

/** A connection is idle when it was not called over between so many looks. */
const LOOKS_PER_TIMEOUT = 5;

interface Seen {
  /** How many looks there had been at the last call. */
  look: number;
  /** Open calls that may last; a closing connection waits for the others anyway. */
  lasting: number;
}

export class IdleSessions {
  readonly #seen = new Map<Http2Session, Seen>();
  readonly #timer: NodeJS.Timeout;
  #look = 0;

  /** @param timeoutMs - No connection is closed earlier; some later, by a fifth of it. */
  constructor(timeoutMs: number) {
    this.#timer = setInterval(() => this.#lookAtAll(), timeoutMs / LOOKS_PER_TIMEOUT);
    this.#timer.unref();
  }

  add(session: Http2Session): void {
    this.#seen.set(session, { look: this.#look, lasting: 0 });
    session.once("close", () => this.#seen.delete(session));
  }

  /** @param isShort - The call ends by itself, soon. */
  called(stream: ServerHttp2Stream, isShort: boolean): void {
    const seen = stream.session === undefined ? undefined : this.#seen.get(stream.session);
    if (seen === undefined) return;
    seen.look = this.#look;
    if (isShort) return;
    seen.lasting += 1;
    stream.once("close", () => {
      seen.lasting -= 1;
      seen.look = this.#look;
    });
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #lookAtAll(): void {
    this.#look += 1;
    const idle = [...this.#seen.keys()].filter((session) => this.#isIdle(session));
    if (idle.length === 0) return;
    setImmediate(() => {
      for (const session of idle) if (this.#isIdle(session)) session.close();
    });
  }

  #isIdle(session: Http2Session): boolean {
    const seen = this.#seen.get(session);
    return seen?.lasting === 0 && this.#look - seen.look > LOOKS_PER_TIMEOUT;
  }
}
