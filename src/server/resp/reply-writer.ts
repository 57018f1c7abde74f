/**
 * Replies as bytes. One buffer serves all connections of a process, since replies are written and
 * taken away within one call; it grows to what the longest stretch of replies needed.
 */

const START_BYTES = 16_384;
/** A number with its sign, its type and its line end. */
const NUMBER_BYTES = 24;
const FIVE_NUMBERS_BYTES = 5 * NUMBER_BYTES;

const COLON = 0x3a;
const MINUS = 0x2d;
const ZERO = 0x30;
const CR = 0x0d;
const LF = 0x0a;

/** RESP2, which every client begins with, or RESP3. */
export type RespVersion = 2 | 3;

export class ReplyWriter {
  #bytes = Buffer.allocUnsafeSlow(START_BYTES);
  length = 0;

  /** Everything written since the last call, as a copy. */
  take(): Buffer {
    const taken = Buffer.from(this.#bytes.subarray(0, this.length));
    this.length = 0;
    return taken;
  }

  /** @param text - In ASCII, without a line end. */
  simple(text: string): void {
    this.#ascii(`+${text}\r\n`);
  }

  /** @param text - In ASCII, without a line end; begins with a word in capitals. */
  error(text: string): void {
    this.#ascii(`-${text}\r\n`);
  }

  integer(value: number): void {
    this.#reserve(NUMBER_BYTES);
    this.#integer(value);
  }

  /** The reply to a check. */
  fiveIntegers(a: number, b: number, c: number, d: number, e: number): void {
    this.#ascii("*5\r\n");
    this.#reserve(FIVE_NUMBERS_BYTES);
    this.#integer(a);
    this.#integer(b);
    this.#integer(c);
    this.#integer(d);
    this.#integer(e);
  }

  bulk(bytes: Uint8Array): void {
    this.#ascii(`$${bytes.length}\r\n`);
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.length);
    this.length += bytes.length;
    this.#ascii("\r\n");
  }

  /** @param text - In ASCII. */
  text(text: string): void {
    this.#ascii(`$${text.length}\r\n${text}\r\n`);
  }

  none(version: RespVersion): void {
    this.#ascii(version === 3 ? "_\r\n" : "$-1\r\n");
  }

  /** In place of an array. */
  noArray(version: RespVersion): void {
    this.#ascii(version === 3 ? "_\r\n" : "*-1\r\n");
  }

  /** Begins an array; its items follow. */
  array(items: number): void {
    this.#ascii(`*${items}\r\n`);
  }

  /** Begins a set: an array to those who know no sets. */
  set(items: number, version: RespVersion): void {
    this.#ascii(version === 3 ? `~${items}\r\n` : `*${items}\r\n`);
  }

  /** Begins a map: an array of keys and values in turn to those who know no maps. */
  map(entries: number, version: RespVersion): void {
    this.#ascii(version === 3 ? `%${entries}\r\n` : `*${2 * entries}\r\n`);
  }

  #ascii(text: string): void {
    this.#reserve(text.length);
    const bytes = this.#bytes;
    let at = this.length;
    for (let i = 0; i < text.length; i += 1) {
      bytes[at] = text.charCodeAt(i);
      at += 1;
    }
    this.length = at;
  }

  /** Room was reserved. */
  #integer(value: number): void {
    const bytes = this.#bytes;
    let at = this.length;
    bytes[at] = COLON;
    at += 1;
    let rest = value;
    if (rest < 0) {
      bytes[at] = MINUS;
      at += 1;
      rest = -rest;
    }
    const end = at + digitsOf(rest);
    for (let place = end - 1; place >= at; place -= 1) {
      const tenth = Math.floor(rest / 10);
      bytes[place] = ZERO + (rest - tenth * 10);
      rest = tenth;
    }
    bytes[end] = CR;
    bytes[end + 1] = LF;
    this.length = end + 2;
  }

  #reserve(more: number): void {
    const needed = this.length + more;
    if (needed <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#bytes.length));
    grown.set(this.#bytes.subarray(0, this.length));
    this.#bytes = grown;
  }
}

/** @param value - Whole, not negative. */
function digitsOf(value: number): number {
  let digits = 1;
  for (let least = 10; value >= least; least *= 10) digits += 1;
  return digits;
}
