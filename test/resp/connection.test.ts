import { describe, expect, it } from "vitest";
import type { Decision } from "../../src/core/decision.ts";
import { HELD_MAX, OUTPUT_BYTES_MAX } from "../../src/server/resp/resp-connection.ts";
import { ExactDecider, HOUR_US, limitOf } from "../server/exact-decider.ts";
import { partsOf, Wire } from "./resp-door.ts";

const limits = [limitOf("api", { tokens: 1, spanUs: HOUR_US, burst: 1_000_000 })];

/** A decider whose checks wait until the test lets them go, by their key. */
class Waiting extends ExactDecider {
  readonly waiting = new Map<string, () => void>();

  override decide(
    checks: Parameters<ExactDecider["decide"]>[0],
  ): readonly Decision[] | Promise<readonly Decision[]> {
    const key = checks[0]?.key ?? "";
    if (!key.startsWith("wait")) return super.decide(checks);
    return new Promise((resolve) => {
      this.waiting.set(key, () => resolve(super.decide(checks) as readonly Decision[]));
    });
  }

  async release(key: string): Promise<void> {
    this.waiting.get(key)?.();
    this.waiting.delete(key);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

interface Stage {
  readonly decider: Waiting;
  readonly door: Wire;
}

function open(): Stage {
  const decider = new Waiting(limits);
  return { decider, door: new Wire(partsOf(decider, () => decider.nowUs)) };
}

/** Tokens that remain, one number for each reply to a check. */
function remaining(text: string): number[] {
  return [...text.matchAll(/:1000000\r\n:(\d+)/g)].map(([, number]) => Number(number));
}

describe("a reply that waits for the store", () => {
  it("holds back the replies behind it, and not those before it", async () => {
    const { decider, door } = open();
    const sent =
      "ECHO a\r\nALIQUOT.CHECK api wait1\r\nECHO b\r\nALIQUOT.CHECK api wait2\r\nECHO c\r\n";
    expect(await door.say(sent)).toBe("$1\r\na\r\n");
    await decider.release("wait2");
    expect(door.text).toBe("$1\r\na\r\n");
    await decider.release("wait1");
    expect(door.text).toMatch(/^\$1\r\na\r\n\*5\r\n[^*$]+\$1\r\nb\r\n\*5\r\n[^*$]+\$1\r\nc\r\n$/);
  });

  it("does not keep those behind it from being decided meanwhile", async () => {
    const { decider, door } = open();
    await door.say("ALIQUOT.CHECK api wait1\r\nALIQUOT.CHECK api k\r\nALIQUOT.CHECK api wait2\r\n");
    expect([...decider.waiting.keys()]).toEqual(["wait1", "wait2"]);
    expect(decider.decided).toBe(1);
  });

  it("comes before what arrives later, however it arrives", async () => {
    const { decider, door } = open();
    await door.say("ALIQUOT.CHECK api wait1\r\n");
    expect(await door.say("PING\r\n")).toBe("");
    expect(await door.say("nonsense\r\n")).toBe("");
    expect(await door.say("*x\r\n")).toBe("");
    expect(door.destroyed).toBe(false);
    await decider.release("wait1");
    expect(door.text).toMatch(/^\*5\r\n(:-?\d+\r\n){5}\+PONG\r\n-ERR unknown .*\r\n-ERR Protocol/);
    expect(door.destroyed).toBe(true);
  });

  it("is written together with the others of its batch", async () => {
    const { decider, door } = open();
    await door.say(Array.from({ length: 50 }, (_, i) => `ALIQUOT.CHECK api wait${i}\r\n`).join(""));
    for (const settle of decider.waiting.values()) settle();
    await new Promise((resolve) => setImmediate(resolve));
    expect(remaining(door.text)).toHaveLength(50);
    expect(door.writes).toBe(1);
  });

  it("is given before QUIT closes the connection, and before the client's end does", async () => {
    for (const last of ["QUIT\r\n", null]) {
      const { decider, door } = open();
      await door.say("ALIQUOT.CHECK api wait1\r\n");
      door.push(last);
      await new Promise((resolve) => setImmediate(resolve));
      expect(door.destroyed).toBe(false);
      await decider.release("wait1");
      expect(remaining(door.text)).toHaveLength(1);
      expect(door.destroyed).toBe(true);
    }
  });

  it("may be one of so many, and beyond it requests wait to be read", async () => {
    const { decider, door } = open();
    const more = 10;
    const checks = Array.from(
      { length: HELD_MAX + more },
      (_, i) => `ALIQUOT.CHECK api wait${i}\r\n`,
    );
    await door.say(checks.join(""));
    expect(decider.waiting.size).toBe(HELD_MAX);
    expect(door.isPaused()).toBe(true);
    await decider.release("wait0");
    expect(decider.waiting.size).toBe(HELD_MAX);
    for (let i = 1; i < HELD_MAX + more; i += 1) await decider.release(`wait${i}`);
    expect(remaining(door.text)).toHaveLength(HELD_MAX + more);
    expect(door.isPaused()).toBe(false);
    expect(await door.say("PING\r\n")).toBe("+PONG\r\n");
  });

  it("harms nobody when the client is gone by then, and spends for nobody after it", async () => {
    const { decider, door } = open();
    const held = Array.from({ length: HELD_MAX }, (_, i) => `ALIQUOT.CHECK api wait${i}\r\n`);
    await door.say(`${held.join("")}ALIQUOT.CHECK api later\r\n`);
    door.destroy();
    for (let i = 0; i < HELD_MAX; i += 1) await decider.release(`wait${i}`);
    expect(decider.decided).toBe(HELD_MAX);
    expect(door.text).toBe("");
  });
});

describe("a client that does not read", () => {
  const message = "x".repeat(4_000);

  it("is not read from either, until it fetches its replies", async () => {
    const { door } = open();
    door.isStuck = true;
    let sent = 0;
    while (!door.isPaused()) {
      await door.say(`ECHO ${message}\r\n`);
      sent += 1;
      expect(sent * 4_000).toBeLessThan(OUTPUT_BYTES_MAX + 100_000);
    }
    expect(door.writableLength).toBeGreaterThanOrEqual(OUTPUT_BYTES_MAX);
    await door.say(`ECHO last\r\n`);
    expect(door.text).toBe("");
    while (!door.text.endsWith("last\r\n")) {
      door.unstick();
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(door.text.match(/\$4000\r\n/g)).toHaveLength(sent);
    expect(await door.say("PING\r\n")).toBe("+PONG\r\n");
  });

  it("costs no more memory than that, however much it asks for at once", async () => {
    const { door } = open();
    door.isStuck = true;
    await door.say("COMMAND\r\n".repeat(7_000));
    expect(door.writableLength).toBeLessThan(OUTPUT_BYTES_MAX + 100_000);
    while (door.isPaused()) {
      door.unstick();
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(door.text.match(/\$13\r\naliquot.check/g)).toHaveLength(7_000);
  });
});

describe("a connection that is to finish", () => {
  it("answers what has come, drops a part of a request, and closes", async () => {
    const { decider, door } = open();
    await door.say("ALIQUOT.CHECK api wait1\r\nPING\r\nALIQUOT.CHECK api k");
    door.connection.finish();
    expect(await door.say("ey\r\nPING\r\n")).toBe("");
    await decider.release("wait1");
    expect(door.text).toMatch(/^\*5\r\n(:-?\d+\r\n){5}\+PONG\r\n$/);
    expect(door.destroyed).toBe(true);
  });

  it("closes at once when there is nothing to answer", async () => {
    const { door } = open();
    await door.say("PING\r\n");
    door.connection.finish();
    await new Promise((resolve) => setImmediate(resolve));
    expect(door.destroyed).toBe(true);
  });
});
