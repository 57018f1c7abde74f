/**
 * A request whose body is handed over whole, past the stream that Node would put it through.
 *
 * A body whose length was announced, and is small enough to keep, needs no flow control: it is
 * complete within the same call of the parser in nearly every case. Passing it through `Readable`
 * would cost two more turns of the tick queue and a dozen events, more than the decision itself. A
 * request that nobody collects is an ordinary stream.
 */
import { IncomingMessage } from "node:http";

const EMPTY = Buffer.alloc(0);

export class WholeRequest extends IncomingMessage {
  /** Node drops what arrives of the body while this is set. */
  declare protected _dumped: boolean;
  #onBody: ((body: Buffer) => void) | undefined;
  #body: Buffer | undefined;
  /** Something is in the stream, so the stream has to be drained. */
  #isStreamed = false;
  #isOver = false;

  static {
    // Node lets go of a request once its stream has ended, which a stream that is not used never
    // does. The base class declares a property here, which only this can replace.
    const { get: ended } =
      Object.getOwnPropertyDescriptor(
        Object.getPrototypeOf(IncomingMessage.prototype),
        "readableEnded",
      ) ?? {};
    Object.defineProperty(WholeRequest.prototype, "readableEnded", {
      configurable: true,
      get(this: WholeRequest): boolean {
        return this.#isOver || ended?.call(this) === true;
      },
    });
  }

  /**
   * Collects the body; to be called before any of it has arrived, as a request handler does.
   *
   * @param bytesMax - Largest announced length that is collected.
   * @param onBody - Called once, or never when the caller goes away first.
   * @returns False when the length is unknown or larger: the body is left to the stream then.
   */
  collect(bytesMax: number, onBody: (body: Buffer) => void): boolean {
    const length = this.headers["content-length"];
    if (length === undefined || Number(length) > bytesMax || this.#isStreamed) return false;
    this.#onBody = onBody;
    return true;
  }

  /** Called by the parser with each part of the body, and with null after the last. */
  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    if (this._dumped && !this.#isStreamed) return true;
    const onBody = this.#onBody;
    if (onBody === undefined) {
      this.#isStreamed = true;
      return super.push(chunk, encoding);
    }
    if (chunk === null) {
      this.#isOver = true;
      onBody(this.#body ?? EMPTY);
    } else {
      this.#body = this.#body === undefined ? chunk : Buffer.concat([this.#body, chunk]);
    }
    return true;
  }

  /** Called by Node when the answer is complete and nobody has read the body. */
  protected _dump(): void {
    if (this.#isStreamed) {
      (IncomingMessage.prototype as unknown as { _dump(): void })._dump.call(this);
      return;
    }
    this._dumped = true;
    this.#isOver = true;
  }
}
