/**
 * A request that a person types: arguments between spaces, quoted where they hold some. The rules
 * are those of Redis: `"..."` knows \n, \r, \t, \b, \a and \xHH, `'...'` only \', and a quote ends
 * an argument.
 */
import { ARGUMENTS_MAX, type Request } from "./request.ts";

const QUOTE = 0x22;
const APOSTROPHE = 0x27;
const BACKSLASH = 0x5c;

const ESCAPES: ReadonlyMap<number, number> = new Map(
  [..."nrtba"].map((letter, index) => [letter.charCodeAt(0), [10, 13, 9, 8, 7][index] as number]),
);

/**
 * Reads the arguments of a line into `request`, whose bytes are a copy then.
 *
 * @param line - Without its line end.
 * @returns What is wrong with the line; undefined when nothing is.
 */
export function readInlineLine(line: Buffer, request: Request): string | undefined {
  // No argument has more bytes than there are in the line.
  const bytes = Buffer.alloc(line.length);
  request.bytes = bytes;
  let [from, to] = [0, 0];
  for (;;) {
    while (from < line.length && isSpace(line[from] as number)) from += 1;
    if (from >= line.length) return undefined;
    if (request.count === ARGUMENTS_MAX) return "too many arguments";
    const start = to;
    while (from < line.length && !isSpace(line[from] as number)) {
      const byte = line[from] as number;
      if (byte === QUOTE || byte === APOSTROPHE) {
        const read = readQuoted(line, from + 1, byte, bytes, to);
        if (read === undefined) return "unbalanced quotes in request";
        [from, to] = [read.from, read.to];
        break;
      }
      bytes[to] = byte;
      to += 1;
      from += 1;
    }
    request.add(start, to);
  }
}

interface Places {
  readonly from: number;
  readonly to: number;
}

/** Undefined when the quotes do not end, or end within an argument. */
function readQuoted(
  line: Buffer,
  begin: number,
  quote: number,
  bytes: Buffer,
  start: number,
): Places | undefined {
  let [from, to] = [begin, start];
  while (from < line.length) {
    const byte = line[from] as number;
    if (byte === quote) {
      const after = line[from + 1];
      return after === undefined || isSpace(after) ? { from: from + 1, to } : undefined;
    }
    const length = byte === BACKSLASH ? escapeLength(line, from, quote) : 1;
    bytes[to] = length === 1 ? byte : escaped(line, from, length);
    from += length;
    to += 1;
  }
  return undefined;
}

/** Bytes of the escape that begins here; 1 when the backslash stands for itself. */
function escapeLength(line: Buffer, at: number, quote: number): number {
  const next = line[at + 1];
  if (next === undefined) return 1;
  if (quote === APOSTROPHE) return next === APOSTROPHE ? 2 : 1;
  return /^x[0-9a-f]{2}$/i.test(line.toString("latin1", at + 1, at + 4)) ? 4 : 2;
}

function escaped(line: Buffer, at: number, length: number): number {
  if (length === 4) return Number.parseInt(line.toString("latin1", at + 2, at + 4), 16);
  const byte = line[at + 1] as number;
  if (line[at + 1] === APOSTROPHE) return APOSTROPHE;
  return ESCAPES.get(byte) ?? byte;
}

/** As `isspace` of C sees it. */
function isSpace(byte: number): boolean {
  return byte === 0x20 || (byte >= 9 && byte <= 13);
}
