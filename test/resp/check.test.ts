import { describe, expect, it } from "vitest";
import { ChargingDecider } from "../../src/server/denied-charges.ts";
import { ExactDecider, HOUR_US, limitOf } from "../server/exact-decider.ts";
import { SoleEngine } from "../support/sole-engine.ts";
import { deciderOf, five, INLINE, type Parts, partsOf, Wire } from "./resp-door.ts";

const vip = limitOf("tiered", { tokens: 1, spanUs: HOUR_US, burst: 50 });
const limits = [
  limitOf("tiered", { tokens: 1, spanUs: HOUR_US, burst: 5, overrides: new Map([["vip", vip]]) }),
  limitOf("hourly", { tokens: 1, spanUs: HOUR_US, burst: 10 }),
  limitOf("wide", { tokens: 10, spanUs: 60_000_000, burst: 10 }),
  limitOf("narrow", { tokens: 3, spanUs: 60_000_000, burst: 3 }),
  limitOf("slow", { tokens: 10, spanUs: 22_000_000, burst: 1 }),
  limitOf("seen", { tokens: 1, spanUs: HOUR_US, burst: 1, shadow: true }),
  limitOf("paid", { tokens: 1, spanUs: HOUR_US, burst: 5, onDeny: "debit" }),
  INLINE,
];

interface Stage {
  readonly sole: SoleEngine;
  readonly parts: Parts;
  readonly door: Wire;
}

function open(): Stage {
  const sole = new SoleEngine(limits);
  const parts = partsOf(deciderOf(sole, limits), () => sole.now);
  return { sole, parts, door: new Wire(parts) };
}

const HOUR = 3_600;

describe("ALIQUOT.CHECK", () => {
  it("answers whether it is limited, the burst, what remains, and two waits in seconds", async () => {
    const { sole, door } = open();
    expect(await door.ask("ALIQUOT.CHECK", "hourly", "k")).toBe(five(0, 10, 9, -1, HOUR));
    expect(await door.ask("aliquot.check", "hourly", "k", 9)).toBe(five(0, 10, 0, -1, 10 * HOUR));
    const denied = five(1, 10, 0, HOUR, 10 * HOUR);
    expect(await door.ask("ALIQUOT.CHECK", "hourly", "k")).toBe(denied);
    expect(await door.ask("ALIQUOT.CHECK", "hourly", "k", 0)).toBe(denied);
    sole.now += HOUR_US;
    expect(await door.ask("ALIQUOT.CHECK", "hourly", "k")).toBe(five(0, 10, 0, -1, 10 * HOUR));
  });

  it("rounds waits up, so that who waits so long is admitted", async () => {
    const { sole, door } = open();
    await door.ask("ALIQUOT.CHECK", "slow", "k");
    sole.now += 100_000;
    expect(await door.ask("ALIQUOT.CHECK", "slow", "k")).toBe(five(1, 1, 0, 3, 3));
    sole.now += 3_000_000;
    expect(await door.ask("ALIQUOT.CHECK", "slow", "k")).toMatch(/^\*5\r\n:0/);
  });

  it("says -1 for the wait of a cost that can never pass", async () => {
    const { door } = open();
    expect(await door.ask("ALIQUOT.CHECK", "narrow", "k", 4)).toBe(five(1, 3, 3, -1, 0));
  });

  it("tells the burst that holds for the key", async () => {
    const { door } = open();
    expect(await door.ask("ALIQUOT.CHECK", "tiered", "vip")).toBe(five(0, 50, 49, -1, HOUR));
    expect(await door.ask("ALIQUOT.CHECK", "tiered", "other")).toBe(five(0, 5, 4, -1, HOUR));
  });

  it("lets pass what a shadow limit would deny", async () => {
    const { door } = open();
    await door.ask("ALIQUOT.CHECK", "seen", "k");
    expect(await door.ask("ALIQUOT.CHECK", "seen", "k")).toMatch(/^\*5\r\n:0\r\n:1\r\n:0\r\n:-1/);
  });

  it("answers for the tightest of several checks", async () => {
    const { door } = open();
    const args = ["ALIQUOT.CHECK", "wide", "k", 1, "narrow", "k", 2] as const;
    expect(await door.ask(...args)).toBe(five(0, 3, 1, -1, 40));
    expect(await door.ask(...args)).toBe(five(1, 3, 1, 20, 40));
  });

  it("takes sixteen checks, and no more", async () => {
    const { door } = open();
    const checks = (count: number) =>
      Array.from({ length: count }, (_, index) => ["hourly", `k${index}`, 1]).flat();
    expect(await door.ask("ALIQUOT.CHECK", ...checks(16))).toBe(five(0, 10, 9, -1, HOUR));
    expect(await door.ask("ALIQUOT.CHECK", ...checks(17))).toContain("-ERR wrong number");
  });

  it("tells how long each check took, and of nothing else", async () => {
    const { parts, door } = open();
    await door.say("PING\r\nALIQUOT.CHECK hourly k\r\nALIQUOT.CHECK nowhere k\r\n");
    expect(parts.durations).toEqual([0]);
  });

  it("answers with an error while a closed limit cannot reach its store", async () => {
    const decider = new ExactDecider(limits);
    decider.closed.add("hourly");
    const door = new Wire(partsOf(decider, () => decider.nowUs));
    expect(await door.ask("ALIQUOT.CHECK", "hourly", "k")).toMatch(/^-UNAVAILABLE .*hourly/);
    expect(await door.ask("ALIQUOT.CHECK", "wide", "k")).toBe(five(0, 10, 9, -1, 6));
  });

  it("outlives a fault of its own, and hides what it was", async () => {
    const decider = new ExactDecider(limits);
    const parts = partsOf(decider, () => decider.nowUs);
    const door = new Wire(parts);
    decider.decide = () => {
      throw new Error("a secret");
    };
    const answer = await door.say("PING\r\nALIQUOT.CHECK hourly k\r\nPING\r\n");
    expect(answer).toBe("+PONG\r\n-ERR the sidecar met a fault of its own\r\n+PONG\r\n");
    decider.decide = () => Promise.reject(new Error("another"));
    expect(await door.ask("ALIQUOT.CHECK", "hourly", "k")).toContain("a fault of its own");
    expect(parts.faults).toHaveLength(2);
  });
});

describe("O18 a denied check over RESP", () => {
  it("spends nothing in any of its limits", async () => {
    const { door } = open();
    const verdicts: string[] = [];
    for (let i = 0; i < 5; i += 1) {
      verdicts.push(
        (await door.ask("ALIQUOT.CHECK", "wide", "k", 1, "narrow", "k", 1)).slice(4, 6),
      );
    }
    expect(verdicts).toEqual([":0", ":0", ":0", ":1", ":1"]);
    const alone: string[] = [];
    for (let i = 0; i < 8; i += 1) {
      alone.push((await door.ask("ALIQUOT.CHECK", "wide", "k")).slice(4, 6));
    }
    expect(alone).toEqual([...Array(7).fill(":0"), ":1"]);
  });

  it("is charged all the same in a limit that says so", async () => {
    const { sole } = open();
    const charging = new ChargingDecider(deciderOf(sole, limits));
    const door = new Wire(partsOf(charging, () => sole.now));
    expect(await door.ask("ALIQUOT.CHECK", "paid", "k", 3)).toBe(five(0, 5, 2, -1, 3 * HOUR));
    expect(await door.ask("ALIQUOT.CHECK", "paid", "k", 3)).toMatch(/^\*5\r\n:1/);
    expect(await door.ask("ALIQUOT.CHECK", "paid", "k", 2)).toMatch(/^\*5\r\n:1/);
  });
});

describe("O19 requests over RESP that are no check", () => {
  const key = `key must have 1 to 256 bytes, got`;
  const cost = "cost must be a whole number from 0 to 1000000000, got";

  it.each([
    [["hourly"], "wrong number of arguments for 'aliquot.check' command; it takes limit key"],
    [["hourly", "k", 1, "wide"], "wrong number of arguments"],
    [["hourly", "k", 1, "wide", "k"], "wrong number of arguments"],
    [["hourli", "k"], 'there is no limit "hourli"; the closest one is "hourly"'],
    [["", "k"], 'there is no limit ""'],
    [["hourly", ""], `${key} 0`],
    [["hourly", "x".repeat(257)], `${key} 257`],
    [["hourly", "ü".repeat(129)], `${key} 258`],
    [["hourly", "k", "x"], `${cost} 'x'`],
    [["hourly", "k", ""], `${cost} ''`],
    [["hourly", "k", -1], `${cost} '-1'`],
    [["hourly", "k", "1e3"], `${cost} '1e3'`],
    [["hourly", "k", "1.0"], `${cost} '1.0'`],
    [["hourly", "k", 1_000_000_001], `${cost} '1000000001'`],
    [["hourly", "k", "9".repeat(30)], `${cost} '${"9".repeat(30)}'`],
    [["hourly", "k", 1, "hourly", "k", "x\r\n"], `${cost} 'x\\x0d\\x0a'`],
  ])("%j is refused, spends nothing, and the connection stays usable", async (args, fault) => {
    const { door } = open();
    const answer = await door.ask("ALIQUOT.CHECK", ...args);
    expect(answer).toMatch(/^-ERR [ -~]+\r\n$/);
    expect(answer).toContain(fault);
    expect(await door.ask("ALIQUOT.CHECK", "hourly", "k", 10)).toMatch(/^\*5\r\n:0\r\n:10\r\n:0/);
  });

  it("a key that is not UTF-8 is refused: replaced bytes would make two keys one", async () => {
    const { door } = open();
    const answer = await door.say("*3\r\n$13\r\nALIQUOT.CHECK\r\n$6\r\nhourly\r\n$1\r\n\xff\r\n");
    expect(answer).toBe("-ERR key is not UTF-8\r\n");
  });

  it("a cost of 0 spends nothing, however often", async () => {
    const { door } = open();
    await door.say("ALIQUOT.CHECK hourly k 0\r\n".repeat(1_000));
    expect(await door.ask("ALIQUOT.CHECK", "hourly", "k")).toBe(five(0, 10, 9, -1, HOUR));
  });
});

describe("O24 different identities over RESP", () => {
  it.each([
    ["user=10.0.0.1", "ip=10.0.0.1"],
    ["a|b:c", "a:b|c"],
    ["a b", "a  b"],
    ["v", "v\0"],
    ["*", "**"],
    ["ü", "u\u0308"],
    ["\ufeffk", "k"],
    ["foo\r\nDEL canary\r\n", "foo"],
    ['k\n{"level":"error"}', "k"],
  ])("%j and %j have buckets of their own", async (first, second) => {
    const { door } = open();
    await door.ask("ALIQUOT.CHECK", "narrow", first, 3);
    expect(await door.ask("ALIQUOT.CHECK", "narrow", second)).toBe(five(0, 3, 2, -1, 20));
    await door.ask("CL.THROTTLE", first, 2, 3, 60, 3);
    expect(await door.ask("CL.THROTTLE", second, 2, 3, 60)).toBe(five(0, 3, 2, -1, 20));
  });

  it("share no bucket between a configured limit and one that a caller brings", async () => {
    const { door } = open();
    await door.ask("ALIQUOT.CHECK", "narrow", "k", 3);
    expect(await door.ask("CL.THROTTLE", "k", 2, 3, 60)).toBe(five(0, 3, 2, -1, 20));
    await door.ask("CL.THROTTLE", "3/60/3 k", 2, 3, 60, 3);
    expect(await door.ask("CL.THROTTLE", "k", 2, 3, 60)).toBe(five(0, 3, 1, -1, 40));
  });

  it("are those of the other doors: bytes of UTF-8 and the same text are one key", async () => {
    const { door, sole } = open();
    await door.ask("ALIQUOT.CHECK", "narrow", "ключ🔑", 2);
    const narrow = limits.find(({ name }) => name === "narrow");
    if (narrow === undefined) throw new Error("there is no such limit");
    expect(sole.check(narrow, 1, "ключ🔑").remaining).toBe(0);
  });
});

describe("O25 addresses as keys over RESP", () => {
  it("are taken as they are given, byte for byte", async () => {
    const { door } = open();
    await door.ask("ALIQUOT.CHECK", "narrow", "203.0.113.7:51000", 3);
    expect(await door.ask("ALIQUOT.CHECK", "narrow", "203.0.113.7:51001")).toMatch(/^\*5\r\n:0/);
    expect(await door.ask("ALIQUOT.CHECK", "narrow", "203.0.113.7:51000")).toMatch(/^\*5\r\n:1/);
  });
});
