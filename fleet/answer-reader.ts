/**
 * Reads HTTP/1.1 answers off a connection, as little as a load generator needs: status and body of
 * answers that tell their length. It exists because the generator shares two cores with what it
 * measures: `node:http` spends about as much on a request as the sidecar does.
 */

/** Most bytes of an unfinished answer; a sidecar's answers to a check are far smaller. */
const ANSWER_BYTES_MAX = 1_048_576;

export class AnswerReader {
  readonly #onAnswer: (status: number, body: string) => void;
  #rest = "";

  constructor(onAnswer: (status: number, body: string) => void) {
    this.#onAnswer = onAnswer;
  }

  /** @throws {Error} When the bytes are no HTTP/1.1 answers with a length. */
  push(chunk: Buffer): void {
    const text =
      this.#rest === "" ? chunk.toString("latin1") : this.#rest + chunk.toString("latin1");
    let at = 0;
    for (;;) {
      const headEnd = text.indexOf("\r\n\r\n", at);
      if (headEnd < 0) break;
      const bodyAt = headEnd + 4;
      const end = bodyAt + lengthIn(text, at, headEnd);
      if (end > text.length) break;
      this.#onAnswer(Number(text.slice(at + 9, at + 12)), text.slice(bodyAt, end));
      at = end;
    }
    this.#rest = text.slice(at);
    if (this.#rest.length > ANSWER_BYTES_MAX) throw new Error("an answer has no end");
  }
}

function lengthIn(text: string, from: number, to: number): number {
  const head = text.slice(from, to);
  if (!head.startsWith("HTTP/1.1 ")) throw new Error(`not an HTTP/1.1 answer: ${head}`);
  const digits = /\r\ncontent-length: *([0-9]+)/i.exec(head)?.[1];
  if (digits === undefined) throw new Error(`an answer without Content-Length: ${head}`);
  return Number(digits);
}
