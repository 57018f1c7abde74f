import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { FAULTY, INCOMPLETE, RequestReader } from "../../src/server/resp/request-reader.ts";
import { ExactDecider, HOUR_US, limitOf } from "../server/exact-decider.ts";
import { FUZZ_TIMEOUT_MS, fuzzRuns } from "../support/fuzz-runs.ts";
import { encode, INLINE, partsOf, Wire } from "./resp-door.ts";

vi.setConfig({ testTimeout: FUZZ_TIMEOUT_MS });

const BURST = 1_000;
const limits = [limitOf("hourly", { tokens: 1, spanUs: HOUR_US, burst: BURST }), INLINE];

const names = fc.constantFrom(
  "ALIQUOT.CHECK",
  "CL.THROTTLE",
  "PING",
  "ECHO",
  "HELLO",
  "CLIENT",
  "COMMAND",
  "SELECT",
  "AUTH",
  "INFO",
  "GET",
);
const words = fc.oneof(
  fc.constantFrom("hourly", "k", "setname", "auth", "docs", "info", "id", "getname", "-1", "0"),
  fc.integer({ min: -2, max: 1_000_000_001 }).map(String),
  fc.string({ unit: "binary", maxLength: 12 }),
);
const requests = fc.tuple(names, fc.array(words, { maxLength: 7 })).map(([name, args]) => {
  return encode(name, ...args);
});
const lines = fc
  .tuple(names, fc.string({ maxLength: 20 }))
  .map((parts) => `${parts.join(" ")}\r\n`);
const pieces = fc.constantFrom(
  "*",
  "$",
  "\r\n",
  "\r",
  "\n",
  "3",
  "-1",
  "*2\r\n$4\r\n",
  '"',
  "\\x4",
);
const bytes = fc.uint8Array({ maxLength: 30 }).map((each) => Buffer.from(each).toString("latin1"));
/** Mostly requests, now and then something that is none. */
const streams = fc
  .array(
    fc.oneof(
      { weight: 12, arbitrary: requests },
      { weight: 4, arbitrary: lines },
      { weight: 1, arbitrary: pieces },
      { weight: 1, arbitrary: bytes },
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join(""));

function open(): {
  readonly decider: ExactDecider;
  readonly door: Wire;
  readonly faults: unknown[];
} {
  const decider = new ExactDecider(limits);
  const parts = partsOf(decider, () => decider.nowUs, 5);
  return { decider, door: new Wire(parts), faults: parts.faults };
}

/** What is answered when a stream comes in parts that end at these places. */
async function answerTo(
  stream: string,
  cuts: readonly number[],
): Promise<{ readonly answer: [string, boolean]; readonly decider: ExactDecider }> {
  const { decider, door, faults } = open();
  const places = [...new Set(cuts.map((cut) => cut % (stream.length + 1)))].sort((a, b) => a - b);
  let from = 0;
  for (const to of [...places, stream.length]) {
    await door.say(stream.slice(from, to));
    from = to;
  }
  expect(faults).toEqual([]);
  return { answer: [door.text, door.destroyed], decider };
}

describe("any bytes over RESP", () => {
  it("are answered alike however they are cut", async () => {
    const cuts = fc.array(fc.nat({ max: 1_000 }), { maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(streams, cuts, async (stream, places) => {
        const { answer } = await answerTo(stream, []);
        expect((await answerTo(stream, places)).answer).toEqual(answer);
      }),
      { numRuns: fuzzRuns(400) },
    );
  });

  it("are answered alike when they come one by one", async () => {
    await fc.assert(
      fc.asyncProperty(streams, async (stream) => {
        const each = [...stream].map((_, index) => index);
        const { answer } = await answerTo(stream, []);
        expect((await answerTo(stream, each)).answer).toEqual(answer);
      }),
      { numRuns: fuzzRuns(60) },
    );
  });

  it("get replies that are RESP, one for each decision at least, and leave others usable", async () => {
    await fc.assert(
      fc.asyncProperty(streams, async (stream) => {
        const { decider, door, faults } = open();
        await door.say(stream);
        expect(faults).toEqual([]);
        expect(repliesIn(door.text)).toBeGreaterThanOrEqual(decider.decided);
        const other = new Wire(partsOf(decider, () => decider.nowUs));
        expect(await other.say("PING\r\n")).toBe("+PONG\r\n");
      }),
      { numRuns: fuzzRuns(300) },
    );
  });

  it("spend what the checks before a fault ask for, and nothing else", async () => {
    const check = fc.record({ key: fc.constantFrom("a", "b"), cost: fc.nat({ max: 3 }) });
    const junk = requests.filter((request) => !request.includes("hourly"));
    const said = fc.array(fc.oneof(check, junk), { maxLength: 20 });
    const cuts = fc.array(fc.nat({ max: 1_000 }), { maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(said, said, cuts, async (before, after, places) => {
        const textOf = (all: typeof before): string =>
          all
            .map((each) => {
              if (typeof each === "string") return each;
              return encode("ALIQUOT.CHECK", "hourly", each.key, each.cost);
            })
            .join("");
        const { decider } = await answerTo(`${textOf(before)}*x\r\n${textOf(after)}`, places);
        const asked = before.reduce((sum, each) => {
          return typeof each === "string" ? sum : sum + each.cost;
        }, 0);
        expect(decider.tallies.get("hourly")?.tokens[0]).toBe(asked);
      }),
      { numRuns: fuzzRuns(150) },
    );
  });

  it("are answered in their order, whatever order the store answers in", async () => {
    // Each check has a key and a cost of its own, so that its reply tells which it is.
    const steps = fc.array(fc.record({ waits: fc.boolean(), place: fc.nat() }), { maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(steps, fc.boolean(), async (checks, endsEarly) => {
        const { decider, door } = open();
        const waiting: { readonly place: number; readonly settle: () => void }[] = [];
        let asked = 0;
        decider.hold = () => {
          const { waits, place } = checks[asked] as (typeof checks)[number];
          asked += 1;
          if (!waits) return undefined;
          return new Promise((settle) => waiting.push({ place, settle }));
        };
        const requestsOf = checks.map((_, i) => encode("ALIQUOT.CHECK", "hourly", `k${i}`, i));
        await door.say(requestsOf.join(""));
        if (endsEarly) door.push(null);
        for (const { settle } of waiting.sort((a, b) => a.place - b.place)) {
          settle();
          await new Promise((resolve) => setImmediate(resolve));
        }
        const left = [...door.text.matchAll(/:1000\r\n:(\d+)/g)].map(([, each]) => Number(each));
        expect(left).toEqual(checks.map((_, i) => BURST - i));
      }),
      { numRuns: fuzzRuns(60) },
    );
  });

  it("never make the reader go back, stand still, or pass the end", () => {
    const reader = new RequestReader();
    const anything = fc.oneof(streams, bytes, fc.string({ unit: pieces, maxLength: 20 }));
    fc.assert(
      fc.property(anything, (stream) => {
        const all = Buffer.from(stream, "latin1");
        let at = 0;
        for (;;) {
          const next = reader.read(all, at);
          if (next === INCOMPLETE || next === FAULTY) break;
          expect(next).toBeGreaterThan(at);
          expect(next).toBeLessThanOrEqual(all.length);
          at = next;
        }
      }),
      { numRuns: fuzzRuns(1_000) },
    );
  });
});

/** Counts replies. @throws {Error} When the text is no sequence of whole replies. */
function repliesIn(text: string): number {
  let [at, count] = [0, 0];
  for (; at < text.length; count += 1) at = afterReply(text, at);
  return count;
}

function afterReply(text: string, at: number): number {
  const end = text.indexOf("\r\n", at);
  if (end < 0) throw new Error(`a reply does not end: ${JSON.stringify(text.slice(at))}`);
  const [kind, line] = [text[at], text.slice(at + 1, end)];
  if (kind === "+" || kind === "-" || kind === "_") return end + 2;
  const length = Number(line);
  if (!/^-?\d+$/.test(line)) throw new Error(`no number: ${JSON.stringify(line)}`);
  if (kind === ":" || length === -1) return end + 2;
  if (kind === "$") {
    const after = end + 2 + length + 2;
    if (text.slice(after - 2, after) !== "\r\n") throw new Error("a bulk string does not end");
    return after;
  }
  if (kind !== "*" && kind !== "%" && kind !== "~") throw new Error(`no reply: ${kind}`);
  let place = end + 2;
  for (let item = 0; item < (kind === "%" ? 2 * length : length); item += 1) {
    place = afterReply(text, place);
  }
  return place;
}
