/** Raw requests over one kept connection, one at a time, and their answers as they came. */
import type { Socket } from "node:net";
import { openSocket } from "./http-client.ts";

export interface RawAnswer {
  readonly status: number;
  readonly head: string;
  readonly body: string;
}

interface Waiting {
  readonly isHead: boolean;
  readonly resolve: (answer: RawAnswer) => void;
  readonly reject: (error: Error) => void;
}

export class KeptLine {
  readonly #port: number;
  #socket: Socket | undefined;
  #text = "";
  #waiting: Waiting | undefined;

  constructor(port: number) {
    this.#port = port;
  }

  /**
   * Sends one request. The connection is opened anew when the last answer said that it would close.
   *
   * @param isHead - The method is HEAD.
   * @throws {Error} When the connection is closed without an answer, or the answer is no HTTP.
   */
  async ask(request: Buffer, isHead: boolean): Promise<RawAnswer> {
    this.#socket ??= await this.#open();
    const answer = await new Promise<RawAnswer>((resolve, reject) => {
      this.#waiting = { isHead, resolve, reject };
      this.#socket?.write(request);
    });
    if (/\r\nconnection: close\r\n/i.test(answer.head)) this.close();
    return answer;
  }

  close(): void {
    this.#waiting = undefined;
    this.#socket?.destroy();
    this.#socket = undefined;
    this.#text = "";
  }

  async #open(): Promise<Socket> {
    const socket = await openSocket({ port: this.#port });
    socket.setEncoding("latin1").on("data", (text: string) => this.#take(text));
    socket.on("error", () => {});
    socket.once("close", () => {
      if (this.#socket !== socket) return;
      this.#waiting?.reject(new Error(`closed with ${JSON.stringify(this.#text)}`));
      this.close();
    });
    return socket;
  }

  #take(text: string): void {
    this.#text += text;
    const answer = answerIn(this.#text, this.#waiting?.isHead === true);
    if (answer === undefined) return;
    const { status, head, body } = answer;
    this.#text = this.#text.slice(head.length + body.length);
    if (status === 100) {
      this.#take("");
      return;
    }
    const waiting = this.#waiting;
    this.#waiting = undefined;
    // A second answer to one request, or a body that is longer than it says.
    if (this.#text !== "") waiting?.reject(new Error(`more than an answer: ${this.#text}`));
    else waiting?.resolve(answer);
  }
}

/**
 * The answer at the beginning of a text, or undefined while it is not all there.
 *
 * @throws {Error} When it is none that tells its length.
 */
function answerIn(text: string, isHead: boolean): RawAnswer | undefined {
  const headEnd = text.indexOf("\r\n\r\n");
  if (headEnd < 0) return undefined;
  const head = text.slice(0, headEnd + 4);
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1]);
  const length = /\r\ncontent-length: (\d+)\r\n/i.exec(head)?.[1];
  const hasNoBody = isHead || status === 204 || status === 100;
  if (Number.isNaN(status) || (length === undefined && !hasNoBody)) {
    throw new Error(`not an answer with a length: ${JSON.stringify(text)}`);
  }
  const end = head.length + (hasNoBody ? 0 : Number(length));
  return end > text.length ? undefined : { status, head, body: text.slice(head.length, end) };
}
