/**
 * One connection: requests in, replies out, in order.
 *
 * Everything that has come is answered before anything is written, so that a pipeline costs one
 * write. A reply that waits for the store holds those behind it back, while the requests behind it
 * are decided already: a pipeline of checks that all ask the store waits for one round trip.
 *
 * Two things make a connection stop reading: too many replies that wait, and too many bytes that
 * the client does not fetch. Requests that have come by then stay where they are.
 */
import type { Duplex } from "node:stream";
import type { Session } from "./connection-commands.ts";
import { FAULTY, INCOMPLETE, RequestReader } from "./request-reader.ts";
import type { RespService } from "./resp-service.ts";

/** Replies of one connection that wait for the store. */
export const HELD_MAX = 1_024;
/** Bytes of replies that the client has not fetched. */
export const OUTPUT_BYTES_MAX = 1_048_576;
/** So many bytes of replies are written at once. */
const WRITE_BYTES = 65_536;

/** A reply in its place; without bytes as long as it waits. */
interface Reply {
  bytes: Buffer | undefined;
}

const NOTHING = Buffer.alloc(0);

export class RespConnection {
  readonly #socket: Duplex;
  readonly #service: RespService;
  readonly #session: Session;
  readonly #reader = new RequestReader();
  /** What has come and is not answered, from `#at` on. */
  #input: Buffer = NOTHING;
  #at = 0;
  /** From the first reply that waits on. */
  #replies: Reply[] = [];
  #replyBytes = 0;
  #held = 0;
  /** Nothing more is read: the client has ended its side, or the listener stops. */
  #hasEnded = false;
  /** Nothing more is answered. */
  #isClosing = false;
  #isBlocked = false;
  #willSend = false;

  constructor(socket: Duplex, service: RespService, id: number) {
    this.#socket = socket;
    this.#service = service;
    this.#session = { id, version: 2, name: "", hasQuit: false };
    socket.on("data", (chunk: Buffer) => this.#take(chunk));
    socket.on("drain", () => this.#continue());
    socket.on("end", () => this.finish());
    // A reset is followed by `close`.
    socket.on("error", () => {});
    socket.once("close", () => {
      // There is nobody left to answer.
      this.#isClosing = true;
      this.#input = NOTHING;
    });
  }

  /** Answers what has come, then closes. */
  finish(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#advance();
  }

  #take(chunk: Buffer): void {
    if (this.#isClosing || this.#hasEnded) return;
    const rest = this.#input.length - this.#at;
    this.#input = rest === 0 ? chunk : Buffer.concat([this.#input.subarray(this.#at), chunk]);
    this.#at = 0;
    this.#advance();
  }

  /** Answers requests until there is none that is complete, or until it must not go on. */
  #advance(): void {
    // A connection can be gone before it says so by `close`.
    if (this.#socket.destroyed) return;
    const { writer } = this.#service;
    const { request } = this.#reader;
    this.#isBlocked = false;
    while (!this.#isClosing && !this.#mustWait()) {
      const next = this.#reader.read(this.#input, this.#at);
      if (next === INCOMPLETE) {
        this.#keepRest();
        break;
      }
      if (next === FAULTY) {
        writer.error(this.#reader.fault);
        this.#isClosing = true;
        break;
      }
      this.#at = next;
      if (request.count === 0) continue;
      const later = this.#service.answer(request, this.#session);
      if (later !== undefined) this.#hold(later);
      else if (writer.length >= WRITE_BYTES) this.#put(writer.take());
      if (this.#session.hasQuit) this.#isClosing = true;
    }
    if (writer.length > 0) this.#put(writer.take());
    this.#send();
    this.#regulate();
  }

  #mustWait(): boolean {
    if (this.#held < HELD_MAX && this.#unfetched() < OUTPUT_BYTES_MAX) return false;
    this.#isBlocked = true;
    return true;
  }

  #unfetched(): number {
    return this.#replyBytes + this.#socket.writableLength;
  }

  /** A part of a request must not keep the whole chunk alive. */
  #keepRest(): void {
    const rest = this.#input.length - this.#at;
    this.#input = rest === 0 ? NOTHING : Buffer.from(this.#input.subarray(this.#at));
    this.#at = 0;
    if (this.#hasEnded) this.#isClosing = true;
  }

  #hold(later: Promise<Buffer>): void {
    const { writer } = this.#service;
    if (writer.length > 0) this.#put(writer.take());
    const reply: Reply = { bytes: undefined };
    this.#replies.push(reply);
    this.#held += 1;
    void later.then((bytes) => {
      reply.bytes = bytes;
      this.#replyBytes += bytes.length;
      this.#held -= 1;
      this.#sendSoon();
    });
  }

  #put(bytes: Buffer): void {
    if (this.#replies.length === 0) {
      this.#socket.write(bytes);
      return;
    }
    this.#replies.push({ bytes });
    this.#replyBytes += bytes.length;
  }

  /** Replies of one batch of the store settle one after the other; they are written together. */
  #sendSoon(): void {
    if (this.#willSend) return;
    this.#willSend = true;
    queueMicrotask(() => {
      this.#willSend = false;
      this.#continue();
    });
  }

  #continue(): void {
    this.#send();
    if (this.#isBlocked) this.#advance();
    else this.#regulate();
  }

  /** Writes the replies that wait for none before them. */
  #send(): void {
    const waiting = this.#replies.findIndex(({ bytes }) => bytes === undefined);
    const ready = waiting < 0 ? this.#replies : this.#replies.slice(0, waiting);
    if (ready.length === 0) return;
    this.#replies = waiting < 0 ? [] : this.#replies.slice(waiting);
    const bytes = Buffer.concat(ready.map((reply) => reply.bytes ?? NOTHING));
    this.#replyBytes -= bytes.length;
    if (!this.#socket.destroyed) this.#socket.write(bytes);
  }

  /** Reads on or does not, and closes when all is said. */
  #regulate(): void {
    const socket = this.#socket;
    if (this.#isClosing && this.#replies.length === 0 && !socket.writableEnded) {
      // What the client still sends is dropped, so that it gets to read the last reply.
      socket.resume();
      socket.end(() => socket.destroy());
    } else if (this.#isBlocked && !this.#isClosing) socket.pause();
    else if (socket.isPaused()) socket.resume();
  }
}
