/**
 * Reads protobuf's wire format from one message.
 *
 * Every method throws `WireError` for bytes that are no message, and nothing else; the reader only
 * moves forward, so that no input can make it loop.
 */
import { isUtf8 } from "node:buffer";

/** Bytes that are no protobuf message. */
export class WireError extends Error {
  override readonly name = "WireError";
}

export const VARINT = 0;
export const BYTES = 2;
const FIXED64 = 1;
const FIXED32 = 5;

const TWO_TO_32 = 4_294_967_296;

export class WireReader {
  readonly #bytes: Buffer;
  #at: number;
  #end: number;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#at = 0;
    this.#end = bytes.length;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#end;
  }

  /** The next field: its number times 8, plus how it is encoded. */
  tag(): number {
    const tag = this.uint32();
    if (tag < 8) throw new WireError("field numbers begin at 1");
    return tag;
  }

  /** The low 32 bits of a varint, as protobuf reads a uint32. */
  uint32(): number {
    const first = this.#byte();
    if (first < 0x80) return first;
    let value = first & 0x7f;
    for (let shift = 7; shift < 70; shift += 7) {
      const byte = this.#byte();
      if (shift < 32) value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
    throw new WireError("a number is longer than ten bytes");
  }

  /** A varint of up to 64 bits; above 2^53 - 1 it is that. */
  uint64(): number {
    let low = 0;
    let high = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = this.#byte();
      const bits = byte & 0x7f;
      if (shift < 28) low += bits * 2 ** shift;
      else high += bits * 2 ** (shift - 28);
      if (byte < 0x80) {
        // Bits beyond the 64th are dropped, as other readers do.
        const wide = (high % 2 ** 36) * 2 ** 28 + low;
        return Math.min(wide, Number.MAX_SAFE_INTEGER);
      }
    }
    throw new WireError("a number is longer than ten bytes");
  }

  /**
   * Enters a message inside this one, whose fields come next.
   *
   * @returns What to hand to `leave` when it is at its end.
   */
  enter(): number {
    const length = this.#length();
    const outerEnd = this.#end;
    this.#end = this.#at + length;
    return outerEnd;
  }

  leave(outerEnd: number): void {
    this.#end = outerEnd;
  }

  /**
   * A text. Bytes that are not UTF-8 are kept apart, each as a lone surrogate: proxies pass on what
   * clients send, and neither may two different values become one, nor may a client get out of its
   * limit by sending a value that fails.
   */
  text(): string {
    const length = this.#length();
    const start = this.#at;
    const end = start + length;
    this.#at = end;
    let isAscii = true;
    for (let i = start; i < end && isAscii; i += 1) isAscii = (this.#bytes[i] as number) < 0x80;
    if (isAscii) return this.#bytes.toString("latin1", start, end);
    const bytes = this.#bytes.subarray(start, end);
    return isUtf8(bytes) ? bytes.toString("utf8") : textOfBrokenUtf8(bytes);
  }

  /** Passes over a field that is not known. */
  skip(tag: number): void {
    const encoding = tag & 7;
    if (encoding === VARINT) this.uint64();
    else if (encoding === BYTES) this.#advance(this.#length());
    else if (encoding === FIXED64) this.#advance(8);
    else if (encoding === FIXED32) this.#advance(4);
    // Groups are gone from protobuf since 2008, and nothing that speaks gRPC ever wrote one.
    else throw new WireError(`a field is encoded in an unknown way (${encoding})`);
  }

  #byte(): number {
    if (this.#at >= this.#end) throw new WireError("the message ends too early");
    const byte = this.#bytes[this.#at] as number;
    this.#at += 1;
    return byte;
  }

  #length(): number {
    const length = this.uint64();
    if (length >= TWO_TO_32 || length > this.#end - this.#at) {
      throw new WireError("a field is longer than the message");
    }
    return length;
  }

  #advance(count: number): void {
    if (count > this.#end - this.#at) throw new WireError("the message ends too early");
    this.#at += count;
  }
}

/** Whole characters as they are; each byte that is part of none as U+DC00 plus the byte. */
function textOfBrokenUtf8(bytes: Buffer): string {
  let text = "";
  let at = 0;
  while (at < bytes.length) {
    const lead = bytes[at] as number;
    const length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    const character = bytes.subarray(at, at + length);
    if (isUtf8(character)) {
      text += character.toString("utf8");
      at += length;
    } else {
      text += String.fromCharCode(0xdc00 + lead);
      at += 1;
    }
  }
  return text;
}
