/** gRPC calls made by hand on `node:http2`, to see and to send what a client library would not. */
import { type ClientHttp2Session, connect, type OutgoingHttpHeaders } from "node:http2";
import { connect as connectSocket } from "node:net";

export const PATH = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/** What came over the wire in answer to one call; without the date. */
export interface RawAnswer {
  readonly headers: Readonly<Record<string, unknown>>;
  readonly trailers: Readonly<Record<string, unknown>> | undefined;
  readonly body: string;
}

export interface RawCall {
  /** In addition to the usual ones; undefined takes one away. */
  readonly headers?: OutgoingHttpHeaders;
  /** Written one by one, each when the one before has gone out. */
  readonly parts: readonly Uint8Array[];
}

export function openSession(socket: string): ClientHttp2Session {
  const session = connect("http://localhost", { createConnection: () => connectSocket(socket) });
  session.on("error", () => {});
  return session;
}

/** Rejects when the stream is reset. */
export function callRaw(session: ClientHttp2Session, call: RawCall): Promise<RawAnswer> {
  const stream = session.request({
    ":method": "POST",
    ":path": PATH,
    "content-type": "application/grpc",
    te: "trailers",
    ...call.headers,
  });
  return new Promise((resolve, reject) => {
    let headers: Record<string, unknown> = {};
    let trailers: Record<string, unknown> | undefined;
    let body = "";
    stream.on("response", (got) => {
      const { date, ...rest } = got;
      headers = rest;
    });
    stream.on("trailers", (got) => {
      trailers = { ...got };
    });
    stream.setEncoding("hex").on("data", (text: string) => {
      body += text;
    });
    stream.on("end", () => resolve({ headers, trailers, body }));
    stream.on("error", reject);
    void writeAll(stream, call.parts);
  });
}

type Sink = Pick<ReturnType<ClientHttp2Session["request"]>, "write" | "end">;

async function writeAll(stream: Sink, parts: readonly Uint8Array[]): Promise<void> {
  for (const part of parts) {
    await new Promise((written) => stream.write(part, written));
    // A turn of the loop, so that the part is a frame of its own.
    await new Promise((turned) => setImmediate(turned));
  }
  stream.end();
}

/** A message with the head of its frame. */
export function framed(message: Uint8Array, flag = 0): Buffer {
  const head = Buffer.alloc(5);
  head[0] = flag;
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}
