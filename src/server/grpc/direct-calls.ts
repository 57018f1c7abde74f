/**
 * Answers ordinary ShouldRateLimit calls on Node's HTTP/2 streams, in front of grpc-js.
 *
 * For each call grpc-js makes metadata objects, interceptors, a decoder, promises and a dozen
 * listeners, and that costs several times what deciding costs. An ordinary call needs none of
 * them: one whole message that is not compressed, and one message or one status back. Whatever is
 * not ordinary (another method, compression, a message in parts or too large, faulty headers) goes
 * to grpc-js as it came; so do the connections themselves. What goes over the wire is what grpc-js
 * would send; a test compares them.
 *
 * The place in front of grpc-js is no part of its interface, so its version is fixed, and one that
 * keeps its HTTP/2 server elsewhere is refused.
 */
import {
  constants,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2";
import { type Server, status } from "@grpc/grpc-js";
import type { IdleSessions } from "./idle-sessions.ts";
import { type CallAnswer, type RateLimitCalls, RefusedCall } from "./rate-limit-calls.ts";
import { FRAME_HEAD_BYTES } from "./rate-limit-codec.ts";

export interface DirectCallParts {
  readonly calls: RateLimitCalls;
  /** The method's path. */
  readonly path: string;
  readonly messageBytesMax: number;
  readonly idle: IdleSessions;
}

type StreamListener = (
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  flags: number,
  rawHeaders: readonly string[],
) => void;

/**
 * Takes ordinary calls from the connections of a server.
 *
 * @param grpc - With one connection injector.
 * @throws {Error} When this grpc-js does not keep its HTTP/2 server where it is looked for.
 */
export function answerDirectly(grpc: Server, parts: DirectCallParts): void {
  const http2 = http2ServerOf(grpc);
  const [listener, ...others] = http2?.listeners("stream") ?? [];
  if (http2 === undefined || listener === undefined || others.length > 0) {
    throw new Error("this version of grpc-js keeps its HTTP/2 server in another way");
  }
  const answerByGrpc = listener as StreamListener;
  http2.on("session", (session) => parts.idle.add(session));
  http2.removeAllListeners("stream");
  const listen: StreamListener = (stream, headers, flags, rawHeaders) => {
    const isOrdinary = isOrdinaryCall(headers, flags, parts.path);
    parts.idle.called(stream, isOrdinary);
    if (isOrdinary) {
      take(stream, parts, () => answerByGrpc(stream, headers, flags, rawHeaders));
    } else {
      answerByGrpc(stream, headers, flags, rawHeaders);
    }
  };
  http2.on("stream", listen);
}

function http2ServerOf(grpc: Server): Http2Server | undefined {
  const servers: unknown = Reflect.get(grpc, "http2Servers");
  if (!(servers instanceof Map) || servers.size !== 1) return undefined;
  const [server] = servers.keys() as Iterable<Http2Server>;
  return server;
}

/**
 * How long the caller waits (`grpc-timeout`) is left to the caller: an answer never takes longer
 * than the decision timeout, and whoever gives up earlier resets the stream.
 */
const TIMEOUT = /^\d{1,8}[HMSmun]$/;

function isOrdinaryCall(headers: IncomingHttpHeaders, flags: number, path: string): boolean {
  if (headers[":path"] !== path || headers[":method"] !== "POST") return false;
  if ((flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0) return false;
  if (headers["content-type"]?.startsWith("application/grpc") !== true) return false;
  const encoding = headers["grpc-encoding"];
  if (encoding !== undefined && encoding !== "identity") return false;
  const timeout = headers["grpc-timeout"];
  return timeout === undefined || (typeof timeout === "string" && TIMEOUT.test(timeout));
}

/** Waits for the message and the end of the call. */
function take(stream: ServerHttp2Stream, parts: DirectCallParts, answerByGrpc: () => void): void {
  let message: Buffer | undefined;
  let isMore = false;
  const onData = (chunk: Buffer): void => {
    if (message !== undefined) {
      isMore = true;
    } else if (isWholeMessage(chunk, parts.messageBytesMax)) {
      message = chunk.subarray(FRAME_HEAD_BYTES);
    } else {
      stream.off("data", onData);
      stream.off("end", onEnd);
      stream.pause();
      stream.unshift(chunk);
      answerByGrpc();
    }
  };
  const onEnd = (): void => {
    if (message === undefined || isMore) {
      refuse(stream, NOT_ONE_MESSAGE);
      return;
    }
    const answer = parts.calls.answer(message);
    if (answer instanceof Promise) void answer.then((late) => send(stream, late));
    else send(stream, answer);
  };
  stream.on("error", ignore);
  stream.on("data", onData);
  stream.on("end", onEnd);
}

/** One message, and nothing else, that is not compressed. */
function isWholeMessage(chunk: Buffer, bytesMax: number): boolean {
  const length = chunk.length - FRAME_HEAD_BYTES;
  return length >= 0 && length <= bytesMax && chunk[0] === 0 && chunk.readUInt32BE(1) === length;
}

function send(stream: ServerHttp2Stream, answer: CallAnswer): void {
  if (answer instanceof RefusedCall) {
    refuse(stream, answer);
    return;
  }
  // The caller may have given up, or gone, while the check waited for the store.
  if (stream.destroyed || stream.closed) return;
  stream.respond(HEADERS, WITH_TRAILERS);
  stream.once("wantTrailers", sendTrailers);
  stream.end(answer);
}

function refuse(stream: ServerHttp2Stream, { code, details }: RefusedCall): void {
  if (stream.destroyed || stream.closed) return;
  const trailers = { "grpc-status": code, "grpc-message": encodeURI(details) };
  stream.respond({ ...trailers, ...PLAIN_HEADERS }, { endStream: true });
}

function sendTrailers(this: ServerHttp2Stream): void {
  this.sendTrailers(TRAILERS);
}

/** What becomes of a broken stream is its peer's affair; `close` follows. */
function ignore(): void {}

const NOT_ONE_MESSAGE: RefusedCall = new RefusedCall(
  status.UNIMPLEMENTED,
  "a call of ShouldRateLimit brings exactly one request message",
);

/** What grpc-js sends. */
const PLAIN_HEADERS = { ":status": 200, "content-type": "application/grpc+proto" };
const HEADERS = {
  ...PLAIN_HEADERS,
  "grpc-accept-encoding": "identity,deflate,gzip",
  "grpc-encoding": "identity",
};
const TRAILERS = { "grpc-status": status.OK, "grpc-message": "OK" };
const WITH_TRAILERS = { waitForTrailers: true };
