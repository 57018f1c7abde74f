/**
 * What becomes of a connection whose requests Node's HTTP parser does not take: it refused the
 * bytes, or a request took too long to arrive.
 *
 * Node looks for late requests by a timer, and timers run before anything is read. After a moment
 * in which the process did not run, the rest of a request may have come long ago and lie in the
 * kernel; so a late request is given until all that has come is read.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { errorCode } from "./listen-error.ts";
import { Problem } from "./problem.ts";

/** A connection of Node's HTTP server, with the answer that is to be written next. */
export type HttpSocket = Socket & { _httpMessage?: ServerResponse<IncomingMessage> | null };

/** Takes the event `clientError` of an HTTP server. */
export function takeClientError(error: Error, socket: HttpSocket): void {
  if (errorCode(error) !== "ERR_HTTP_REQUEST_TIMEOUT") {
    refuse(socket, problemOf(error));
    return;
  }
  // To Node, a connection over which nothing has come yet is a request that is late. It is an idle
  // one (pools connect ahead), and has the time of the idle ones.
  if (socket.bytesRead === 0) return;
  const { bytesWritten } = socket;
  setImmediate(() => {
    const isAnswered = socket.bytesWritten !== bytesWritten;
    if (!isAnswered && !awaitsAnswer(socket)) refuse(socket, lateRequest());
  });
}

/** Answers with a problem and closes: the rest of such a stream has no meaning. */
function refuse(socket: HttpSocket, problem: Problem): void {
  // An answer that is still to come, or of which a part has gone, would be taken for this one; and
  // a connection that has sent nothing expects none.
  const hasBegun = socket._httpMessage?.headersSent === true;
  if (!socket.writable || socket.bytesRead === 0 || awaitsAnswer(socket) || hasBegun) {
    socket.destroy();
    return;
  }
  const body = problem.json();
  socket.end(
    `HTTP/1.1 ${problem.status} ${problem.fields.title ?? "Error"}\r\n` +
      `Content-Type: application/problem+json\r\nContent-Length: ${body.length}\r\n` +
      `Connection: close\r\n\r\n${body}`,
    () => socket.destroy(),
  );
}

/** A request that has come in full is not answered yet. */
function awaitsAnswer({ _httpMessage: answer }: HttpSocket): boolean {
  return answer?.req.complete === true;
}

function problemOf(error: Error): Problem {
  if (errorCode(error) === "HPE_HEADER_OVERFLOW") {
    const title = "Request Header Fields Too Large";
    return new Problem(431, "the head of the request is too large", { title });
  }
  return new Problem(400, "the request is not HTTP/1.1", { title: "Bad Request" });
}

function lateRequest(): Problem {
  return new Problem(408, "the request took too long to arrive", { title: "Request Timeout" });
}
