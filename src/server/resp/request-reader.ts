/**
 * Finds the next request in bytes of RESP: an array of bulk strings, or a line of text.
 *
 * It keeps nothing between two calls: a request that is not complete is read again from its start
 * when more has come, which is cheap, since the bytes of arguments are skipped and not read. So how
 * the bytes were cut on their way can change nothing. Faults are found byte by byte, for the same
 * reason: whether a request is refused must not depend on how much of it is there.
 */
import { readInlineLine } from "./inline-line.ts";
import {
  ARGUMENT_BYTES_MAX,
  ARGUMENTS_MAX,
  printable,
  REQUEST_BYTES_MAX,
  Request,
} from "./request.ts";

/** More bytes are needed. */
export const INCOMPLETE = -1;
/** What follows has no meaning any more; `fault` says why. */
export const FAULTY = -2;

/** Longest line of a request in text, its line end not counted. */
export const LINE_BYTES_MAX: number = ARGUMENT_BYTES_MAX;

const DIGITS_MAX = 9;
const STAR = 0x2a;
const DOLLAR = 0x24;
const MINUS = 0x2d;
const CR = 0x0d;
const LF = 0x0a;
const ZERO = 0x30;
const NINE = 0x39;

const TAKEN =
  `a request has at most ${ARGUMENTS_MAX} arguments of ${ARGUMENT_BYTES_MAX} bytes each, ` +
  `and ${REQUEST_BYTES_MAX} bytes in all`;

export class RequestReader {
  readonly request: Request = new Request();
  fault = "";
  #number = 0;

  /**
   * Reads one request into `request`.
   *
   * @returns Where the next one begins, or `INCOMPLETE`, or `FAULTY`.
   */
  read(bytes: Buffer, at: number): number {
    const { request } = this;
    request.count = 0;
    if (at >= bytes.length) return INCOMPLETE;
    if (bytes[at] !== STAR) return this.#readLine(bytes, at);
    request.bytes = bytes;
    let next = this.#readNumber(bytes, at + 1, "multibulk");
    if (next < 0) return next;
    const count = this.#number;
    if (count > ARGUMENTS_MAX) return this.#fail(`invalid multibulk length; ${TAKEN}`);
    for (let index = 0; index < count; index += 1) {
      next = this.#readBulk(bytes, next, at);
      if (next < 0) {
        request.count = 0;
        return next;
      }
    }
    return next;
  }

  #readBulk(bytes: Buffer, at: number, requestAt: number): number {
    if (at >= bytes.length) return INCOMPLETE;
    if (bytes[at] !== DOLLAR) {
      return this.#fail(`expected '$', got '${printable(bytes.subarray(at, at + 1))}'`);
    }
    const start = this.#readNumber(bytes, at + 1, "bulk");
    if (start < 0) return start;
    const end = start + this.#number;
    const isTooLong = this.#number > ARGUMENT_BYTES_MAX || end + 2 - requestAt > REQUEST_BYTES_MAX;
    if (isTooLong || this.#number < 0) return this.#fail(`invalid bulk length; ${TAKEN}`);
    const next = this.#readLineEnd(bytes, end);
    if (next >= 0) this.request.add(start, end);
    return next;
  }

  /** A number and its line end; it may be negative. */
  #readNumber(bytes: Buffer, at: number, what: "multibulk" | "bulk"): number {
    const isNegative = bytes[at] === MINUS;
    const first = isNegative ? at + 1 : at;
    let value = 0;
    for (let place = first; place < bytes.length; place += 1) {
      const byte = bytes[place] as number;
      if (byte >= ZERO && byte <= NINE && place - first < DIGITS_MAX) {
        value = value * 10 + (byte - ZERO);
      } else if (byte === CR && place > first) {
        this.#number = isNegative ? -value : value;
        return this.#readLineEnd(bytes, place);
      } else {
        return this.#fail(`invalid ${what} length; ${TAKEN}`);
      }
    }
    return INCOMPLETE;
  }

  #readLineEnd(bytes: Buffer, at: number): number {
    if (at >= bytes.length) return INCOMPLETE;
    if (bytes[at] !== CR) return this.#fail("expected CR LF after a length or an argument");
    if (at + 1 >= bytes.length) return INCOMPLETE;
    if (bytes[at + 1] !== LF) return this.#fail("expected CR LF after a length or an argument");
    return at + 2;
  }

  #readLine(bytes: Buffer, at: number): number {
    const newline = bytes.subarray(at, at + LINE_BYTES_MAX + 2).indexOf(LF);
    if (newline < 0) {
      const isTooLong = bytes.length - at >= LINE_BYTES_MAX + 2;
      return isTooLong ? this.#fail("too big inline request") : INCOMPLETE;
    }
    const hasCr = newline > 0 && bytes[at + newline - 1] === CR;
    const line = bytes.subarray(at, at + newline - (hasCr ? 1 : 0));
    if (line.length > LINE_BYTES_MAX) return this.#fail("too big inline request");
    // A page in a browser can send HTTP here, and its body would be taken for requests.
    if (/ HTTP\/1\.[01]$/.test(line.toString("latin1", Math.max(0, line.length - 9)))) {
      return this.#fail("this is the Redis protocol; HTTP is answered elsewhere");
    }
    const fault = readInlineLine(line, this.request);
    return fault === undefined ? at + newline + 1 : this.#fail(fault);
  }

  #fail(fault: string): number {
    this.fault = `ERR Protocol error: ${fault}`;
    this.request.count = 0;
    return FAULTY;
  }
}
