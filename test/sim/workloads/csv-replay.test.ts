/** Traces recorded elsewhere: what is read, and what is said about lines that cannot be. */
import { describe, expect, test } from "vitest";
import { limitOf } from "../../../sim/scenarios/scenario-of.ts";
import { ANY_POD } from "../../../sim/workload.ts";
import { csvReplay, parseTrace } from "../../../sim/workloads/csv-replay.ts";

const LIMITS = [limitOf({ name: "api" }), limitOf({ name: "llm" })];
const HEADER = "time,pod,limit,key,cost";

function problemsOf(...lines: string[]): readonly string[] {
  return parseTrace("t.csv", `${lines.join("\n")}\n`, LIMITS).problems ?? [];
}

test("a trace is replayed as it was recorded, quoted fields and comments included", () => {
  const text = [
    HEADER,
    "0,3,api,alice,1",
    "# a pause",
    "",
    '0.25,any,llm,"team ""x"", eu",4000',
    "1.000001,0,api,bob,0",
  ].join("\r\n");
  const { arrivals = [], problems } = parseTrace("t.csv", text, LIMITS);
  expect(problems).toBeUndefined();
  expect(arrivals).toEqual([
    { atUs: 0, pod: 3, client: 0, checks: [{ limit: 0, key: "alice", cost: 1 }] },
    {
      atUs: 250_000,
      pod: ANY_POD,
      client: 0,
      checks: [{ limit: 1, key: 'team "x", eu', cost: 4000 }],
    },
    { atUs: 1_000_001, pod: 0, client: 0, checks: [{ limit: 0, key: "bob", cost: 0 }] },
  ]);
  const setup = { random: undefined as never, limits: LIMITS, durationUs: 0, pods: 1 };
  const run = csvReplay("t.csv", arrivals).start(setup);
  expect([run.next(), run.next(), run.next(), run.next()]).toEqual([...arrivals, undefined]);
});

test("columns may come in any order, and cost may be left out", () => {
  const { arrivals } = parseTrace("t.csv", "key,limit,time,pod\nk,api,1.5,2\n", LIMITS);
  expect(arrivals?.[0]).toMatchObject({ atUs: 1_500_000, pod: 2, checks: [{ cost: 1 }] });
});

describe("every problem names its line and what would be accepted", () => {
  test.each([
    ["time,pod,limit", 1, "there is no key"],
    ["time,pod,limit,key,price", 1, 'got "price"'],
  ])("header %s", (header, line, says) => {
    const [problem] = problemsOf(header, "0,0,api,k,1");
    expect(problem).toMatch(new RegExp(`^t\\.csv:${line}: `));
    expect(problem).toContain(says);
  });

  test.each([
    ["x,0,api,k,1", "time must be seconds such as 0.25"],
    ["1.1234567,0,api,k,1", "time must be seconds"],
    ["1,-1,api,k,1", "from 0 to 9999, or any"],
    ["1,1.5,api,k,1", "from 0 to 9999, or any"],
    ["1,,api,k,1", "from 0 to 9999, or any"],
    ["1,0,apj,k,1", 'there is no limit "apj"; there are api, llm'],
    ["1,0,api,,1", "key must be 1 to 256 bytes"],
    ["1,0,api,k,-1", "cost must be a whole number"],
    ["1,0,api,k", "has 4 fields, expected 5"],
    ['1,0,api,"k,1', "a quote is not closed"],
  ])("%s", (row, says) => {
    const problems = problemsOf(HEADER, "0,0,api,k,1", row);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(/^t\.csv:3: /);
    expect(problems[0]).toContain(says);
  });

  test("time that goes back", () => {
    expect(problemsOf(HEADER, "2,0,api,k,1", "1,0,api,k,1")[0]).toContain("before the line above");
  });

  test("a file without requests, and a file full of problems", () => {
    expect(problemsOf(HEADER)).toEqual(["t.csv: holds no request"]);
    const many = problemsOf(HEADER, ...new Array<string>(30).fill("x,0,api,k,1"));
    expect(many).toHaveLength(11);
    expect(many.at(-1)).toBe("t.csv: and 20 more");
  });
});
