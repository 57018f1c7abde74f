/**
 * Writes protobuf's wire format, front to back.
 *
 * A nested message is written with one byte for its length, which is enough for most; a longer one
 * is moved to make room. Values that equal the default are left out, as protobuf 3 has it. What is
 * finished is a part of the writer's block of memory, which is not written to again: one block
 * holds many small messages, and none is copied.
 */

const BLOCK_BYTES_MIN = 512;
const BLOCK_BYTES_MAX = 16_384;
const TWO_TO_32 = 4_294_967_296;

/** Room for a tag and a number. */
const NUMBER_BYTES_MAX = 15;

/** Texts up to here are written byte by byte, which is quicker than to call for it. */
const SHORT_TEXT_MAX = 64;

export class WireWriter {
  #block: Buffer = Buffer.allocUnsafe(BLOCK_BYTES_MIN);
  /** Where the message begins. */
  #start = 0;
  #at = 0;

  /**
   * Begins anew, forgetting a message that could not be finished.
   *
   * @param headBytes - Room to leave in front, with whatever was there.
   */
  begin(headBytes = 0): void {
    this.#at = this.#start;
    this.#reserve(headBytes);
    this.#at += headBytes;
  }

  /** The bytes written since the last message was finished. */
  finish(): Buffer {
    const written = this.#block.subarray(this.#start, this.#at);
    this.#start = this.#at;
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
    this.#at = this.#block.writeDoubleLE(value, this.#at);
  }

  text(field: number, value: string): void {
    if (value !== "") this.textAlways(field, value);
  }

  /** A text that is written also when it is empty. */
  textAlways(field: number, value: string): void {
    this.#reserve(NUMBER_BYTES_MAX + 3 * value.length);
    this.#varint(field * 8 + 2);
    const start = this.#at + 1;
    const ascii = value.length <= SHORT_TEXT_MAX ? this.#ascii(value, start) : 0;
    const rest = ascii === value.length ? "" : value.slice(ascii);
    const length = rest === "" ? ascii : ascii + this.#block.write(rest, start + ascii, "utf8");
    this.#closeLength(this.#at, length);
  }

  /** Writes a message inside this one, also when it is empty. */
  message(field: number, write: (writer: WireWriter) => void): void {
    const open = this.open(field);
    write(this);
    this.close(open);
  }

  /** Begins a message inside this one. @returns What to hand to `close` at its end. */
  open(field: number): number {
    this.#reserve(NUMBER_BYTES_MAX);
    this.#varint(field * 8 + 2);
    this.#at += 1;
    // Counted from the start of the message, which may move to another block.
    return this.#at - this.#start;
  }

  close(open: number): void {
    const bodyAt = this.#start + open;
    this.#closeLength(bodyAt - 1, this.#at - bodyAt);
  }

  /** Writes the leading characters that are ASCII. @returns How many there are. */
  #ascii(value: string, start: number): number {
    const block = this.#block;
    for (let i = 0; i < value.length; i += 1) {
      const code = value.charCodeAt(i);
      if (code >= 0x80) return i;
      block[start + i] = code;
    }
    return value.length;
  }

  /** Puts the length in front of `length` bytes that begin after the byte at `lengthAt`. */
  #closeLength(lengthAt: number, length: number): void {
    if (length < 0x80) {
      this.#block[lengthAt] = length;
      this.#at = lengthAt + 1 + length;
      return;
    }
    const bodyAt = lengthAt + 1 - this.#start;
    this.#at = lengthAt + 1 + length;
    this.#reserve(NUMBER_BYTES_MAX);
    const from = this.#start + bodyAt;
    this.#block.copyWithin(from + varintBytes(length) - 1, from, this.#at);
    this.#at = from - 1;
    this.#varint(length);
    this.#at += length;
  }

  #varint(value: number): void {
    let rest = value;
    while (rest >= TWO_TO_32 / 2) {
      this.#block[this.#at] = (rest % 128) | 0x80;
      this.#at += 1;
      rest = Math.floor(rest / 128);
    }
    while (rest >= 0x80) {
      this.#block[this.#at] = (rest & 0x7f) | 0x80;
      this.#at += 1;
      rest >>>= 7;
    }
    this.#block[this.#at] = rest;
    this.#at += 1;
  }

  /** Goes on in another block when this one has no room. */
  #reserve(count: number): void {
    if (this.#at + count <= this.#block.length) return;
    const written = this.#at - this.#start;
    const usual = Math.min(BLOCK_BYTES_MAX, 2 * this.#block.length);
    const block = Buffer.allocUnsafeSlow(Math.max(usual, 2 * (written + count)));
    this.#block.copy(block, 0, this.#start, this.#at);
    this.#block = block;
    this.#start = 0;
    this.#at = written;
  }
}

function varintBytes(value: number): number {
  let bytes = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 128)) bytes += 1;
  return bytes;
}
