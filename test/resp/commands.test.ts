import { describe, expect, it } from "vitest";
import { ExactDecider, limitOf } from "../server/exact-decider.ts";
import { partsOf, Wire } from "./resp-door.ts";

function wire(): Wire {
  const decider = new ExactDecider([limitOf("api")]);
  return new Wire(partsOf(decider, () => decider.nowUs));
}

const WELCOME_2 =
  "*14\r\n$6\r\nserver\r\n$7\r\naliquot\r\n$7\r\nversion\r\n$5\r\n1.2.3\r\n$5\r\nproto\r\n:2\r\n" +
  "$2\r\nid\r\n:7\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n" +
  "$7\r\nmodules\r\n*0\r\n";
const WELCOME_3 = WELCOME_2.replace("*14", "%7").replace(":2", ":3");

describe("commands that set a connection up", () => {
  it.each([
    [["PING"], "+PONG\r\n"],
    [["ping", "hello there"], "$11\r\nhello there\r\n"],
    [["PING", "a", "b"], "-ERR wrong number of arguments for 'ping' command\r\n"],
    [["ECHO", "x"], "$1\r\nx\r\n"],
    [["ECHO"], "-ERR wrong number of arguments for 'echo' command\r\n"],
    [["SELECT", 0], "+OK\r\n"],
    [["SELECT", 1], "-ERR DB index is out of range; there is 0 only\r\n"],
    [["SELECT", "x"], "-ERR value is not an integer or out of range\r\n"],
    [["AUTH", "user", "password"], "+OK\r\n"],
    [["CLIENT", "ID"], ":7\r\n"],
    [["CLIENT", "GETNAME"], "$-1\r\n"],
    [["CLIENT", "SETINFO", "LIB-NAME", "x"], "+OK\r\n"],
    [["HELLO"], WELCOME_2],
    [["HELLO", 2], WELCOME_2],
    [["HELLO", 3], WELCOME_3],
    [["HELLO", 3, "AUTH", "default", "x", "SETNAME", "me"], WELCOME_3],
    [["HELLO", 4], "-NOPROTO unsupported protocol version; 2 and 3 are supported\r\n"],
    [["HELLO", "x"], "-ERR Protocol version is not an integer or out of range\r\n"],
    [["HELLO", 3, "AUTH", "x"], "-ERR Syntax error in HELLO option 'AUTH'\r\n"],
  ])("%j", async (args, answer) => {
    expect(await wire().ask(...args)).toBe(answer);
  });

  it("keep a name, and say none in the words of the version agreed upon", async () => {
    const door = wire();
    expect(await door.ask("CLIENT", "SETNAME", "me")).toBe("+OK\r\n");
    expect(await door.ask("CLIENT", "GETNAME")).toBe("$2\r\nme\r\n");
    expect(await door.ask("CLIENT", "SETNAME", "not me")).toContain("-ERR Client names cannot");
    expect(await door.ask("HELLO", 3, "SETNAME", "")).toBe(WELCOME_3);
    expect(await door.ask("CLIENT", "GETNAME")).toBe("_\r\n");
  });

  it("that were refused change nothing", async () => {
    const door = wire();
    await door.ask("HELLO", 3, "SETNAME", "me", "AUTH");
    expect(await door.ask("CLIENT", "GETNAME")).toBe("$-1\r\n");
  });

  it("answer QUIT and close, whatever is behind it", async () => {
    const door = wire();
    expect(await door.say("PING\r\nQUIT\r\nPING\r\n")).toBe("+PONG\r\n+OK\r\n");
    expect(door.destroyed).toBe(true);
  });

  it("say in INFO that nothing is loading", async () => {
    const info = await wire().ask("INFO");
    expect(info).toContain("redis_version:7.0.0\r\n");
    expect(info).toContain("loading:0\r\n");
  });
});

describe("COMMAND", () => {
  it("counts, lists and tells about the commands that there are", async () => {
    const door = wire();
    expect(await door.ask("COMMAND", "COUNT")).toBe(":11\r\n");
    expect(await door.ask("COMMAND", "LIST")).toMatch(/^\*11\r\n\$13\r\naliquot.check\r\n/);
    expect(await door.ask("COMMAND")).toMatch(/^\*11\r\n\*10\r\n\$13\r\naliquot.check\r\n:-3\r\n/);
    expect(await door.ask("COMMAND", "INFO", "nosuch", "PING")).toBe(
      "*2\r\n*-1\r\n*10\r\n$4\r\nping\r\n:-1\r\n*3\r\n+fast\r\n+loading\r\n+stale\r\n" +
        ":0\r\n:0\r\n:0\r\n*0\r\n*0\r\n*0\r\n*0\r\n",
    );
  });

  it("uses maps and sets in RESP3", async () => {
    const door = wire();
    await door.ask("HELLO", 3);
    expect(await door.ask("COMMAND", "INFO", "ping")).toContain("~3\r\n+fast\r\n");
    expect(await door.ask("COMMAND", "DOCS", "echo")).toMatch(/^%1\r\n\$4\r\necho\r\n%4\r\n/);
  });

  it("says what it takes", async () => {
    const answer = await wire().ask("COMMAND", "GETKEYS", "x");
    expect(answer).toContain("COMMAND takes COUNT, LIST, DOCS [name ...] and INFO [name ...]");
  });
});

describe("an unknown command", () => {
  it("is named with what came with it and what there is, and the connection stays", async () => {
    const door = wire();
    expect(await door.ask("GET", "a", "b c")).toMatch(
      /^-ERR unknown command 'GET', with args beginning with: 'a' 'b c' ; there are ALIQUOT.CHECK/,
    );
    expect(await door.ask("PING")).toBe("+PONG\r\n");
  });

  it("cannot smuggle a line into the reply, nor make it long", async () => {
    const answer = await wire().ask("a\r\n+OK\r\n", ...Array(60).fill("x\r\n".repeat(1_0)));
    expect(answer.match(/\r\n/g)).toHaveLength(1);
    expect(answer.length).toBeLessThan(600);
  });

  it.each([
    ["CLIENT", "KILL"],
    ["CLIENT", "SETNAME"],
  ])("%s %s says what there is", async (...args) => {
    expect(await wire().ask(...args)).toContain("CLIENT takes ID, GETNAME, SETNAME name and");
  });
});
