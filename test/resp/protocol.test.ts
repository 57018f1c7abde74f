import { describe, expect, it } from "vitest";
import { ExactDecider, limitOf } from "../server/exact-decider.ts";
import { encode, partsOf, Wire } from "./resp-door.ts";

function wire(): Wire {
  const decider = new ExactDecider([limitOf("api")]);
  return new Wire(partsOf(decider, () => decider.nowUs));
}

describe("requests", () => {
  it.each([
    ["an array of bulk strings", "*1\r\n$4\r\nPING\r\n", "+PONG\r\n"],
    ["a line", "PING\r\n", "+PONG\r\n"],
    ["a line that ends in LF alone", "ping\n", "+PONG\r\n"],
    ["a line with quotes", 'ECHO "a b\\n\\x41"\r\n', "$5\r\na b\nA\r\n"],
    ["a line with apostrophes", "ECHO 'it\\'s \"so\"'\r\n", '$9\r\nit\'s "so"\r\n'],
    ["a line with spaces around", "  ECHO   x  \r\n", "$1\r\nx\r\n"],
    ["an empty argument", "*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", "$0\r\n\r\n"],
    ["bytes of any kind", "*2\r\n$4\r\nECHO\r\n$4\r\n\r\n\0\xff\r\n", "$4\r\n\r\n\0\xff\r\n"],
    ["several at once", "PING\r\n*1\r\n$4\r\nPING\r\nECHO x\r\n", "+PONG\r\n+PONG\r\n$1\r\nx\r\n"],
  ])("are taken as %s", async (_, sent, answered) => {
    expect(await wire().say(sent)).toBe(answered);
  });

  it.each(["\r\n", "\n", "   \r\n", "*0\r\n", "*-1\r\n"])(
    "without a command are ignored: %j",
    async (sent) => {
      const door = wire();
      expect(await door.say(sent)).toBe("");
      expect(await door.say("PING\r\n")).toBe("+PONG\r\n");
    },
  );

  it("are answered with one write, however many come at once", async () => {
    const door = wire();
    expect(await door.say("PING\r\n".repeat(1_000))).toBe("+PONG\r\n".repeat(1_000));
    expect(door.writes).toBe(1);
  });

  it("may come one byte at a time", async () => {
    const door = wire();
    for (const byte of encode("ECHO", "x")) await door.say(byte);
    expect(door.text).toBe("$1\r\nx\r\n");
  });
});

/** Four arguments of five; they are too many bytes only with the fifth. */
const FOUR_LONG = ["*5\r\n", ...Array(4).fill(`$4096\r\n${"x".repeat(4_096)}\r\n`)].join("");

describe("what is not RESP", () => {
  const taken = "a request has at most 64 arguments of 4096 bytes each, and 16384 bytes in all";

  it.each([
    ["*x\r\n", `invalid multibulk length; ${taken}`],
    ["*65\r\n", `invalid multibulk length; ${taken}`],
    ["*1234567890\r\n", `invalid multibulk length; ${taken}`],
    ["*\r\n", `invalid multibulk length; ${taken}`],
    ["*1\n$4\r\nPING\r\n", `invalid multibulk length; ${taken}`],
    ["*1\r\nPING\r\n", "expected '$', got 'P'"],
    ["*1\r\n\xff", "expected '$', got '\\xff'"],
    ["*1\r\n$-1\r\n", `invalid bulk length; ${taken}`],
    ["*1\r\n$4097\r\n", `invalid bulk length; ${taken}`],
    [FOUR_LONG, `invalid bulk length; ${taken}`],
    ["*1\r\n$4\r\nPINGS\r\n", "expected CR LF after a length or an argument"],
    ["*1\r\n$4\r\nPING\r\r", "expected CR LF after a length or an argument"],
    ['ECHO "a\r\n', "unbalanced quotes in request"],
    ["ECHO 'a'b\r\n", "unbalanced quotes in request"],
    [`${"x ".repeat(65)}\r\n`, "too many arguments"],
    ["x".repeat(4_098), "too big inline request"],
    [`${"x".repeat(4_097)}\n`, "too big inline request"],
    ["POST /v1/check HTTP/1.1\r\n", "this is the Redis protocol; HTTP is answered elsewhere"],
  ])("is answered and the connection closed: %j", async (sent, fault) => {
    const door = wire();
    const answer = await door.say(`PING\r\n${sent}`);
    const rest = sent === FOUR_LONG ? await door.say("$4096\r\n") : "";
    expect(answer + rest).toBe(`+PONG\r\n-ERR Protocol error: ${fault}\r\n`);
    expect(door.destroyed).toBe(true);
  });

  it("is not read on: what follows a fault is no request", async () => {
    const door = wire();
    expect(await door.say("*x\r\nPING\r\nPING\r\n")).not.toContain("PONG");
    expect(door.destroyed).toBe(true);
  });

  it("may be as long as it may", async () => {
    const door = wire();
    expect(await door.say(`ECHO ${"x".repeat(4_091)}\r\n`)).toHaveLength(4_091 + 9);
    const long = encode("PING", "x".repeat(4_096));
    expect(await door.say(long)).toHaveLength(4_096 + 9);
    expect(await door.say(encode(...Array.from({ length: 64 }, () => "x")))).toContain(
      "ERR unknown",
    );
  });
});
