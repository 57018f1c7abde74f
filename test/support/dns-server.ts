/**
 * A DNS server for A and AAAA records of a few names, over UDP and, for answers that do not fit,
 * TCP. It can stop answering, and answer with a failure.
 */
import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import { createServer, type Server, type Socket as TcpSocket } from "node:net";
import { freePort } from "./free-port.ts";

const TYPE_A = 1;
const TYPE_AAAA = 28;
const UDP_BYTES_MAX = 512;

export const REFUSED = 5;
export const SERVER_FAILURE = 2;
const NAME_UNKNOWN = 3;

export interface Records {
  readonly a?: readonly string[];
  /** Each 16 bytes in hexadecimal. */
  readonly aaaa?: readonly string[];
}

export class DnsServer {
  readonly names: Map<string, Records> = new Map();
  /** Names of all questions, lower case, in order. */
  readonly asked: string[] = [];
  overTcp = 0;
  silent = false;
  /** Answers every question of this type (or of all) with this code. */
  failure: { readonly code: number; readonly type?: number } | undefined;
  port = 0;
  private readonly udp: Socket = createSocket("udp4");
  private readonly tcp: Server = createServer((socket) => this.serve(socket));
  private readonly sockets = new Set<TcpSocket>();

  async start(): Promise<void> {
    this.udp.on("message", (message, from) => this.receive(message, from));
    this.port = await freePort();
    await new Promise<void>((resolve) => this.udp.bind(this.port, "127.0.0.1", resolve));
    await new Promise<void>((resolve) => this.tcp.listen(this.port, "127.0.0.1", resolve));
  }

  /** `count` IPv4 addresses under a name. */
  set(name: string, count: number): void {
    const a = Array.from({ length: count }, (_, i) => `10.0.${i >> 8}.${i & 255}`);
    this.names.set(name, { a });
  }

  async dispose(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise<void>((resolve) => this.udp.close(resolve));
    await new Promise((resolve) => this.tcp.close(resolve));
  }

  private receive(message: Buffer, from: RemoteInfo): void {
    if (this.silent) return;
    const whole = this.answer(message);
    const fits = whole.length <= UDP_BYTES_MAX;
    this.udp.send(fits ? whole : truncated(message), from.port, from.address);
  }

  private serve(socket: TcpSocket): void {
    this.sockets.add(socket);
    let got = Buffer.alloc(0);
    socket.on("error", () => {});
    socket.on("close", () => this.sockets.delete(socket));
    socket.on("data", (piece) => {
      got = Buffer.concat([got, piece]);
      while (got.length >= 2 && got.length >= 2 + got.readUInt16BE(0)) {
        const length = got.readUInt16BE(0);
        const whole = this.answer(got.subarray(2, 2 + length));
        got = got.subarray(2 + length);
        this.overTcp += 1;
        if (this.silent) continue;
        const head = Buffer.alloc(2);
        head.writeUInt16BE(whole.length);
        socket.write(Buffer.concat([head, whole]));
      }
    });
  }

  private answer(message: Buffer): Buffer {
    const { name, type, end } = questionOf(message);
    this.asked.push(name);
    const { failure } = this;
    if (failure !== undefined && (failure.type ?? type) === type) {
      return reply(message, end, failure.code, []);
    }
    const records = this.names.get(name);
    if (records === undefined) return reply(message, end, NAME_UNKNOWN, []);
    const data: Buffer[] = [];
    if (type === TYPE_A) {
      for (const text of records.a ?? []) data.push(Buffer.from(text.split(".").map(Number)));
    } else if (type === TYPE_AAAA) {
      for (const text of records.aaaa ?? []) data.push(Buffer.from(text, "hex"));
    }
    return reply(
      message,
      end,
      0,
      data.map((each) => recordOf(type, each)),
    );
  }
}

export const A: number = TYPE_A;

function questionOf(message: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join(".").toLowerCase(), type: message.readUInt16BE(at + 1), end: at + 5 };
}

function reply(message: Buffer, end: number, code: number, records: readonly Buffer[]): Buffer {
  const head = Buffer.alloc(12);
  message.copy(head, 0, 0, 2);
  head.writeUInt16BE(0x8180 | code, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(records.length, 6);
  return Buffer.concat([head, message.subarray(12, end), ...records]);
}

/** "Ask again over TCP". */
function truncated(message: Buffer): Buffer {
  const short = reply(message, questionOf(message).end, 0, []);
  short.writeUInt16BE(0x8380, 2);
  return short;
}

/**
 * The name is a pointer to the question; valid for 30 s, as an answer of a cluster's DNS may be.
 */
function recordOf(type: number, data: Buffer): Buffer {
  const head = Buffer.alloc(12);
  head.writeUInt16BE(0xc00c, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt32BE(30, 6);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}
