/**
 * Writes protobuf's wire format, front to back into one growing buffer.
 *
 * A nested message is written with one byte for its length, which is enough for most; a longer one
 * is moved to make room. Values that equal the default are left out, as protobuf 3 has it.
 */

const START_BYTES = 512;
const TWO_TO_32 = 4_294_967_296;

/** Room for a tag and a number. */
const NUMBER_BYTES_MAX = 15;

export class WireWriter {
  #bytes = Buffer.allocUnsafe(START_BYTES);
  #at = 0;

  /** Forgets what was written, for a message that could not be finished. */
  clear(): void {
    this.#at = 0;
  }

  /**
   * The bytes written, as a copy; the writer starts again.
   *
   * @param headBytes - Room to leave in front of them, with whatever was there.
   */
  finish(headBytes = 0): Buffer {
    const written = Buffer.allocUnsafe(headBytes + this.#at);
    this.#bytes.copy(written, headBytes, 0, this.#at);
    this.#at = 0;
    return written;
  }

  /** @param value - A whole number from 0 to 2^53 - 1. */
  uint(field: number, value: number): void {
    if (value !== 0) this.uintAlways(field, value);
  }

  /** A number that is written also when it is 0. */
  uintAlways(field: number, value: number): void {
    this.#reserve(NUMBER_BYTES_MAX);
    this.#varint(field * 8);
    this.#varint(value);
  }

  /** @param value - Any double; written also when it is 0. */
  double(field: number, value: number): void {
    this.#reserve(NUMBER_BYTES_MAX);
    this.#varint(field * 8 + 1);
    this.#at = this.#bytes.writeDoubleLE(value, this.#at);
  }

  text(field: number, value: string): void {
    if (value !== "") this.textAlways(field, value);
  }

  /** A text that is written also when it is empty. */
  textAlways(field: number, value: string): void {
    this.#reserve(NUMBER_BYTES_MAX + 3 * value.length);
    this.#varint(field * 8 + 2);
    const start = this.#at + 1;
    const length = this.#bytes.write(value, start, "utf8");
    this.#closeLength(this.#at, length);
  }

  /** Writes a message inside this one, also when it is empty. */
  message(field: number, write: (writer: WireWriter) => void): void {
    this.#reserve(NUMBER_BYTES_MAX);
    this.#varint(field * 8 + 2);
    const lengthAt = this.#at;
    this.#at += 1;
    write(this);
    this.#closeLength(lengthAt, this.#at - lengthAt - 1);
  }

  /** Puts the length in front of `length` bytes that begin after the byte at `lengthAt`. */
  #closeLength(lengthAt: number, length: number): void {
    if (length < 0x80) {
      this.#bytes[lengthAt] = length;
      this.#at = lengthAt + 1 + length;
      return;
    }
    this.#at = lengthAt + 1 + length;
    this.#reserve(NUMBER_BYTES_MAX);
    const extra = varintBytes(length) - 1;
    this.#bytes.copyWithin(lengthAt + 1 + extra, lengthAt + 1, this.#at);
    this.#at = lengthAt;
    this.#varint(length);
    this.#at += length;
  }

  #varint(value: number): void {
    let rest = value;
    while (rest >= TWO_TO_32 / 2) {
      this.#bytes[this.#at] = (rest % 128) | 0x80;
      this.#at += 1;
      rest = Math.floor(rest / 128);
    }
    while (rest >= 0x80) {
      this.#bytes[this.#at] = (rest & 0x7f) | 0x80;
      this.#at += 1;
      rest >>>= 7;
    }
    this.#bytes[this.#at] = rest;
    this.#at += 1;
  }

  #reserve(count: number): void {
    const needed = this.#at + count;
    if (needed <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.#bytes.length));
    this.#bytes.copy(larger, 0, 0, this.#at);
    this.#bytes = larger;
  }
}

function varintBytes(value: number): number {
  let bytes = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 128)) bytes += 1;
  return bytes;
}
