/**
 * One HTTP/2 connection that makes ShouldRateLimit calls over a Unix socket, and no more of HTTP/2
 * than that takes: a client of a benchmark must cost less than the server it measures, and
 * `node:http2` or grpc-js would cost as much.
 *
 * Calls fit the first flow-control windows many times over, and node's server gives back what was
 * used; the request's headers are written without a table, answers are told by their message.
 */
import { connect, type Socket } from "node:net";

const PATH = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
const FRAME_HEAD = 9;
/** Compressed flag and length in front of a message. */
const MESSAGE_HEAD = 5;
const WINDOW_MORE = 2 ** 30;

const DATA = 0;
const HEADERS = 1;
const RESET = 3;
const SETTINGS = 4;
const PING = 6;
const GOAWAY = 7;
const WINDOW_UPDATE = 8;

const END_STREAM = 1;
const ACK = 1;
const END_HEADERS = 4;

export interface CallEnds {
  /** A call ended; without a message it failed. The message is only good until this returns. */
  readonly onAnswer: (stream: number, message: Buffer | undefined) => void;
  /** The connection is of no more use. */
  readonly onTrouble: (error: Error) => void;
}

export class CallConnection {
  readonly #socket: Socket;
  readonly #ends: CallEnds;
  #stream = -1;
  #unsent: Buffer[] = [];
  #rest: Buffer = Buffer.alloc(0);
  /** Messages whose call has not ended yet. */
  readonly #messages = new Map<number, Buffer>();
  #isClosed = false;

  constructor(path: string, ends: CallEnds, onReady: () => void) {
    this.#ends = ends;
    this.#socket = connect(path, () => {
      const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");
      const more = Buffer.alloc(4);
      more.writeUInt32BE(WINDOW_MORE);
      this.#socket.write(
        Buffer.concat([preface, frame(SETTINGS, 0, 0), frame(WINDOW_UPDATE, 0, 0, more)]),
      );
      onReady();
    });
    this.#socket.on("data", (chunk: Buffer) => this.#read(chunk));
    this.#socket.on("error", (error) => this.#trouble(error));
    this.#socket.on("close", () => this.#trouble(new Error("the server closed a connection")));
  }

  /** Makes a call when `flush` comes. @returns Its stream, for `onAnswer`. */
  call(message: Buffer): number {
    this.#stream += 2;
    const body = Buffer.allocUnsafe(MESSAGE_HEAD + message.length);
    body[0] = 0;
    body.writeUInt32BE(message.length, 1);
    message.copy(body, MESSAGE_HEAD);
    this.#unsent.push(
      frame(HEADERS, END_HEADERS, this.#stream, REQUEST_HEADERS),
      frame(DATA, END_STREAM, this.#stream, body),
    );
    return this.#stream;
  }

  flush(): void {
    if (this.#unsent.length === 0) return;
    this.#socket.write(Buffer.concat(this.#unsent));
    this.#unsent = [];
  }

  close(): void {
    this.#isClosed = true;
    this.#socket.destroy();
  }

  #read(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    while (bytes.length - at >= FRAME_HEAD && !this.#isClosed) {
      const end = at + FRAME_HEAD + bytes.readUIntBE(at, 3);
      if (end > bytes.length) break;
      const stream = bytes.readUInt32BE(at + 5);
      const body = bytes.subarray(at + FRAME_HEAD, end);
      this.#take(bytes[at + 3] as number, bytes[at + 4] as number, stream, body);
      at = end;
    }
    this.#rest = bytes.subarray(at);
    if (!this.#isClosed) this.flush();
  }

  #take(type: number, flags: number, stream: number, body: Buffer): void {
    if (type === DATA && body.length > 0) this.#messages.set(stream, body);
    if (type === SETTINGS && (flags & ACK) === 0) this.#unsent.push(frame(SETTINGS, ACK, 0));
    if (type === PING && (flags & ACK) === 0) this.#unsent.push(frame(PING, ACK, 0, body));
    if (type === GOAWAY) this.#trouble(new Error("the server sent GOAWAY"));
    const isEnd = (type === DATA || type === HEADERS) && (flags & END_STREAM) !== 0;
    if (!isEnd && type !== RESET) return;
    // A message is in one frame: grpc-js writes it at once, and it is far below 16 KiB.
    const message = this.#messages.get(stream)?.subarray(MESSAGE_HEAD);
    this.#messages.delete(stream);
    this.#ends.onAnswer(stream, message);
  }

  #trouble(error: Error): void {
    if (this.#isClosed) return;
    this.close();
    this.#ends.onTrouble(error);
  }
}

/** Makes one call. @returns The message of its answer. @throws {Error} When it fails. */
export function callOnce(path: string, message: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const ends: CallEnds = {
      onAnswer: (_stream, answer) => {
        connection.close();
        if (answer === undefined) reject(new Error("the call failed"));
        else resolve(Buffer.from(answer));
      },
      onTrouble: reject,
    };
    const connection: CallConnection = new CallConnection(path, ends, () => {
      connection.call(message);
      connection.flush();
    });
  });
}

function frame(
  type: number,
  flags: number,
  stream: number,
  body: Buffer = Buffer.alloc(0),
): Buffer {
  const bytes = Buffer.allocUnsafe(FRAME_HEAD + body.length);
  bytes.writeUIntBE(body.length, 0, 3);
  bytes[3] = type;
  bytes[4] = flags;
  bytes.writeUInt32BE(stream, 5);
  body.copy(bytes, FRAME_HEAD);
  return bytes;
}

/** RFC 7541: indexed fields (0x80), and literals that no table keeps (0x00). */
const REQUEST_HEADERS: Buffer = Buffer.concat([
  Buffer.from([0x83, 0x86]), // :method POST, :scheme http
  Buffer.from([0x04]),
  literal(PATH),
  Buffer.from([0x01]),
  literal("localhost"),
  Buffer.from([0x0f, 31 - 15]), // content-type
  literal("application/grpc"),
  Buffer.from([0x00]),
  literal("te"),
  literal("trailers"),
]);

/** A text of fewer than 127 bytes, as it is. */
function literal(text: string): Buffer {
  return Buffer.concat([Buffer.from([text.length]), Buffer.from(text, "latin1")]);
}
