/**
 * An answer whose head and body leave in one write.
 *
 * `ServerResponse` checks and joins headers one by one, writes head and body as a vector, and
 * completes a tick later. For the answers of the hot path, whose headers are known to be sound,
 * the same bytes are put together here and handed to the socket as one string; then the response
 * is told to be finished, which is what makes Node go on with the connection. Wherever something is
 * out of the ordinary (another answer is still on its way, the connection is to be closed), the
 * answer is left to Node.
 */
import { ServerResponse, STATUS_CODES } from "node:http";
import type { WholeRequest } from "./whole-request.ts";

/** What a listener's responses have in common. */
export interface ResponseTerms {
  /** Connections are to be closed after the answer. */
  isDraining: boolean;
  /** As the `Keep-Alive` header tells it, ms. */
  readonly keepAliveTimeoutMs: number;
}

export abstract class DirectResponse extends ServerResponse<WholeRequest> {
  /** What Node tells in the `Keep-Alive` header. */
  declare protected _keepAliveTimeout: number;
  protected abstract get terms(): ResponseTerms;

  // Whether to keep the connection is decided when the head is written, not when the request
  // came: requests in flight at the moment of the stop must tell as well.
  override writeHead(status: number, ...rest: unknown[]): this {
    const { isDraining, keepAliveTimeoutMs } = this.terms;
    if (isDraining) this.shouldKeepAlive = false;
    this._keepAliveTimeout = keepAliveTimeoutMs;
    return super.writeHead(status, ...(rest as []));
  }

  /**
   * Answers with everything in one write.
   *
   * @param head - Lines of the head after the status line, each with its line end; nothing in it is
   *   checked. `Date`, `Connection` and `Keep-Alive` are added.
   * @param body - In Latin-1, of the length that the head tells.
   * @returns False when nothing was written and the answer has to go the ordinary way.
   */
  sendWhole(status: number, head: string, body: string): boolean {
    const { socket } = this;
    if (socket === null || !socket.writable || !this.shouldKeepAlive || this.headersSent) {
      return false;
    }
    const { terms } = this;
    if (terms.isDraining || this.req.method === "HEAD") return false;
    socket.write(`${statusLine(status)}${head}${tailOf(terms)}${body}`, "latin1");
    this.finished = true;
    this.emit("finish");
    return true;
  }
}

/** The class of one listener's responses. */
export function directResponses(terms: ResponseTerms): typeof ServerResponse<WholeRequest> {
  return class extends DirectResponse {
    protected override get terms(): ResponseTerms {
      return terms;
    }
  };
}

function statusLine(status: number): string {
  return status === 200 ? "HTTP/1.1 200 OK\r\n" : `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`;
}

/** What Node adds to the head of an answer on a connection that is kept. */
function tailOf({ keepAliveTimeoutMs }: ResponseTerms): string {
  const nowMs = Date.now();
  if (nowMs >= dateEndsMs || nowMs < dateEndsMs - 1_000) {
    dateLine = `Date: ${new Date(nowMs).toUTCString()}\r\nConnection: keep-alive\r\n`;
    dateEndsMs = nowMs - (nowMs % 1_000) + 1_000;
  }
  return `${dateLine}Keep-Alive: timeout=${Math.floor(keepAliveTimeoutMs / 1_000)}\r\n\r\n`;
}

/** The date of the current second, which all answers in it share. */
let dateLine = "";
let dateEndsMs = 0;
