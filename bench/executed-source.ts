/**
 * How much of the engine's source is executed: every block's tokens (names, numbers, signs) times
 * how often the block ran, as V8's block coverage counts it. A stand-in for machine instructions
 * that is the same on every machine, whatever the compiler does, and that no rename changes. Work
 * inside of built-in functions is not seen.
 */
import { readFileSync } from "node:fs";
import { type Profiler, Session } from "node:inspector";
import { fileURLToPath } from "node:url";

const TOKEN = /[\w$#]+|[^\s\w]/g;
const COMMENT = /\/\*[\s\S]*?\*\/|\/\/[^\n]*/g;

/** Counts from its creation on; code that is loaded before is seen less finely. */
export class ExecutedSource {
  readonly #session = new Session();
  readonly #isCounted: (url: string) => boolean;
  readonly #tokensBefore = new Map<string, Uint32Array>();

  constructor(isCounted: (url: string) => boolean) {
    this.#isCounted = isCounted;
    this.#session.connect();
    this.#session.post("Profiler.enable");
    this.#session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  }

  /** Tokens executed since the last call. */
  take(): number {
    let tokens = 0;
    // In process the session answers before `post` returns.
    this.#session.post("Profiler.takePreciseCoverage", (error, { result }) => {
      if (error !== null) throw error;
      for (const script of result)
        if (this.#isCounted(script.url)) tokens += this.#tokensOf(script);
    });
    return tokens;
  }

  #tokensOf({ url, functions }: Profiler.ScriptCoverage): number {
    const before = this.#positions(url);
    const ranges = functions.flatMap((each) => each.ranges);
    // An outer range comes before what it encloses; the innermost one says how often.
    ranges.sort((a, b) => a.startOffset - b.startOffset || b.endOffset - a.endOffset);
    const own = ranges.map(({ startOffset, endOffset }) => between(before, startOffset, endOffset));
    const enclosing: number[] = [];
    for (const [i, range] of ranges.entries()) {
      while (enclosing.length > 0) {
        const outer = enclosing[enclosing.length - 1] as number;
        if ((ranges[outer] as Profiler.CoverageRange).endOffset > range.startOffset) {
          own[outer] = (own[outer] as number) - between(before, range.startOffset, range.endOffset);
          break;
        }
        enclosing.pop();
      }
      enclosing.push(i);
    }
    return ranges.reduce((sum, { count }, i) => sum + count * (own[i] as number), 0);
  }

  /** For each offset of the source, the tokens that begin before it. */
  #positions(url: string): Uint32Array {
    const known = this.#tokensBefore.get(url);
    if (known !== undefined) return known;
    const source = readFileSync(fileURLToPath(url), "utf8");
    const code = source.replace(COMMENT, (comment) => " ".repeat(comment.length));
    const before = new Uint32Array(code.length + 2);
    for (const { index } of code.matchAll(TOKEN)) before[index + 1] = 1;
    for (let at = 1; at < before.length; at += 1) {
      before[at] = (before[at] as number) + (before[at - 1] as number);
    }
    this.#tokensBefore.set(url, before);
    return before;
  }
}

function between(before: Uint32Array, start: number, end: number): number {
  return (before[end] as number) - (before[start] as number);
}
