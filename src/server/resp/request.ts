/**
 * One request as it lies in the bytes that were read: where each argument begins and ends. There is
 * one object of it for each connection, filled again and again, so that reading makes no garbage.
 */

/** Most arguments of a request, the command's name included: 16 checks of three and some room. */
export const ARGUMENTS_MAX = 64;
/** Most bytes of one argument. */
export const ARGUMENT_BYTES_MAX = 4_096;
/** Most bytes of a request, its lengths and line ends included. */
export const REQUEST_BYTES_MAX = 16_384;

/** What repeats a caller's text repeats no more of it. */
const SHOWN_MAX = 64;
/** Longer texts are no numbers that anything here takes. */
const DIGITS_MAX = 15;

const EMPTY = Buffer.alloc(0);
const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;
const LOWER_CASE = 0x20;

export class Request {
  bytes: Buffer = EMPTY;
  /** Arguments, the command's name included; 0 when there is nothing to answer. */
  count = 0;
  readonly starts: Int32Array = new Int32Array(ARGUMENTS_MAX);
  readonly ends: Int32Array = new Int32Array(ARGUMENTS_MAX);

  add(start: number, end: number): void {
    this.starts[this.count] = start;
    this.ends[this.count] = end;
    this.count += 1;
  }

  start(index: number): number {
    return this.starts[index] as number;
  }

  end(index: number): number {
    return this.ends[index] as number;
  }

  /** The argument itself; valid until the next request is read. */
  slice(index: number): Buffer {
    return this.bytes.subarray(this.start(index), this.end(index));
  }

  /** One character for each byte. */
  latin1(index: number): string {
    return this.bytes.toString("latin1", this.start(index), this.end(index));
  }

  /** @param name - In lower case: letters, and signs that have no case. */
  isNamed(index: number, name: string): boolean {
    const start = this.start(index);
    if (this.end(index) - start !== name.length) return false;
    for (let i = 0; i < name.length; i += 1) {
      const byte = this.bytes[start + i] as number;
      const lower = byte >= 0x41 && byte <= 0x5a ? byte | LOWER_CASE : byte;
      if (lower !== name.charCodeAt(i)) return false;
    }
    return true;
  }

  /** Whether an argument is this text, one byte for each character. */
  isText(index: number, text: string): boolean {
    const start = this.start(index);
    if (this.end(index) - start !== text.length) return false;
    for (let i = 0; i < text.length; i += 1) {
      if (this.bytes[start + i] !== text.charCodeAt(i)) return false;
    }
    return true;
  }

  /** The whole number that an argument spells, NaN when it spells none. */
  wholeNumber(index: number): number {
    const [start, end] = [this.start(index), this.end(index)];
    const isNegative = this.bytes[start] === MINUS;
    const first = isNegative ? start + 1 : start;
    if (first >= end || end - first > DIGITS_MAX) return Number.NaN;
    let value = 0;
    for (let at = first; at < end; at += 1) {
      const byte = this.bytes[at] as number;
      if (byte < ZERO || byte > NINE) return Number.NaN;
      value = value * 10 + (byte - ZERO);
    }
    // Not -0 for "-0".
    return isNegative ? 0 - value : value;
  }

  /** An argument for people, in printable ASCII, cut when it is long. */
  shown(index: number): string {
    const bytes = this.slice(index);
    const cut = bytes.length > SHOWN_MAX;
    return `'${printable(bytes.subarray(0, SHOWN_MAX))}${cut ? "..." : ""}'`;
  }
}

/** Bytes as printable ASCII; what is none is escaped. */
export function printable(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) {
    const isPlain = byte >= 0x20 && byte <= 0x7e && byte !== 0x27 && byte !== 0x5c;
    text += isPlain ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, "0")}`;
  }
  return text;
}
