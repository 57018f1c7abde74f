import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Batch, BatchReply } from "../../src/core/exchange.ts";
import { type Coordinator, CoordinatorError } from "../../src/ports/coordinator.ts";
import { PENDING_PER_LANE_MAX, ReconcileLoop } from "../../src/runtime/reconcile-loop.ts";
import { SystemClock } from "../../src/runtime/system-clock.ts";
import { SystemRandom } from "../../src/runtime/system-random.ts";
import { ADMITTED, batchOf, CHECK, LIMIT, replyOf, ScriptedEngine } from "./scripted-engine.ts";

interface Attempt {
  readonly batch: Batch;
  readonly answer: (reply: BatchReply) => void;
  readonly fail: (error: unknown) => void;
}

/** A coordinator whose answers the test gives, when and in the order it likes. */
class HandCoordinator implements Coordinator {
  readonly lanes = 4;
  readonly attempts: Attempt[] = [];
  throws: Error | undefined;

  exchange(batch: Batch): Promise<BatchReply> {
    if (this.throws !== undefined) throw this.throws;
    return new Promise((answer, fail) => this.attempts.push({ batch, answer, fail }));
  }

  call(): never {
    throw new Error("not used");
  }

  heartbeat(): never {
    throw new Error("not used");
  }

  async leave(): Promise<void> {}
  async close(): Promise<void> {}

  attempt(index: number): Attempt {
    const attempt = this.attempts[index];
    if (attempt === undefined) throw new Error(`only ${this.attempts.length} attempts`);
    return attempt;
  }
}

let engine: ScriptedEngine;
let coordinator: HandCoordinator;
let loop: ReconcileLoop;
let faults: unknown[];
let ends: string[];

beforeEach(() => {
  vi.useFakeTimers();
  engine = new ScriptedEngine();
  coordinator = new HandCoordinator();
  faults = [];
  ends = [];
  loop = new ReconcileLoop({
    engine,
    limits: [LIMIT],
    coordinator,
    clock: new SystemClock(),
    random: new SystemRandom(),
    onFault: (error) => faults.push(error),
    onStoreCall: (outcome) => ends.push(outcome),
    onReply: (took) => ends.push(`reply after ${took > 0 ? "some" : "no"} time`),
  });
});

afterEach(() => {
  loop.stop();
  vi.useRealTimers();
});

const nowUs = (): number => Math.floor(performance.now() * 1_000);

/** Lets the engine emit a batch and the loop send it. */
async function send(lane: number, seq: number): Promise<void> {
  engine.script.push([{ kind: "exchange", batch: batchOf(lane, seq) }]);
  engine.wakeAt = nowUs();
  loop.start();
  await vi.advanceTimersByTimeAsync(2);
}

describe("checks", () => {
  it("are answered in the same turn, without a promise, when the engine decides by itself", () => {
    expect(loop.decide([CHECK])).toEqual([ADMITTED]);
    expect(loop.report(CHECK)).toEqual(ADMITTED);
  });

  it("are answered by the effect with their number when the engine holds them", async () => {
    engine.decideAnswer = { held: 7 };
    engine.wakeAt = nowUs() + 3_000;
    engine.script.push([{ kind: "answer", held: 7, decisions: [ADMITTED] }]);
    const answer = loop.decide([CHECK]);
    expect(answer).toBeInstanceOf(Promise);
    expect(loop.heldChecks).toBe(1);
    await vi.advanceTimersByTimeAsync(3);
    expect(await answer).toEqual([ADMITTED]);
    expect(loop.heldChecks).toBe(0);
  });

  it("of one event-loop turn share one wake-up", async () => {
    engine.on.decide = () => {
      engine.wakeAt = nowUs();
    };
    for (let i = 0; i < 100; i += 1) void loop.decide([CHECK]);
    await vi.advanceTimersByTimeAsync(0);
    expect(engine.heard.filter((line) => line === "tick")).toHaveLength(1);
  });

  it("know the limits in force, also after a change of configuration", () => {
    expect(loop.limit("api")).toBe(LIMIT);
    expect(loop.limits()).toEqual([LIMIT]);
    const other = { ...LIMIT, name: "other" };
    loop.configChanged([other]);
    expect(loop.limit("api")).toBeUndefined();
    expect(loop.limit("other")).toBe(other);
    expect(engine.heard).toEqual(["limits other"]);
  });
});

describe("wake-ups", () => {
  it("come at the instant the engine wants and not before", async () => {
    engine.wakeAt = nowUs() + 100_000;
    loop.start();
    await vi.advanceTimersByTimeAsync(99);
    expect(engine.heard).toEqual([]);
    await vi.advanceTimersByTimeAsync(2);
    expect(engine.heard).toEqual(["tick"]);
  });

  it("follow an instant that moves closer", async () => {
    engine.wakeAt = nowUs() + 100_000;
    loop.start();
    engine.on.decide = () => {
      engine.wakeAt = nowUs() + 10_000;
    };
    void loop.decide([CHECK]);
    await vi.advanceTimersByTimeAsync(11);
    expect(engine.heard).toEqual(["decide", "tick"]);
  });

  it("follow an instant that moves away", async () => {
    engine.wakeAt = nowUs() + 10_000;
    loop.start();
    engine.wakeAt = nowUs() + 100_000;
    loop.membershipFailed(new CoordinatorError("timeout", "no reply"));
    await vi.advanceTimersByTimeAsync(90);
    expect(engine.heard).toEqual(["membership failed"]);
    await vi.advanceTimersByTimeAsync(11);
    expect(engine.heard).toEqual(["membership failed", "tick"]);
  });

  it("wait longer than one timer can without firing early", async () => {
    engine.wakeAt = nowUs() + 60 * 86_400 * 1_000_000;
    loop.start();
    await vi.advanceTimersByTimeAsync(59 * 86_400 * 1_000);
    expect(engine.heard).toEqual([]);
    await vi.advanceTimersByTimeAsync(86_400 * 1_000 + 1);
    expect(engine.heard).toEqual(["tick"]);
  });

  it("leave the event loop a millisecond between two that follow at once", async () => {
    engine.on.tick = () => {
      engine.wakeAt = nowUs();
    };
    engine.wakeAt = nowUs();
    loop.start();
    await vi.advanceTimersByTimeAsync(20);
    expect(engine.heard.length).toBeGreaterThan(10);
    expect(engine.heard.length).toBeLessThanOrEqual(22);
  });
});

describe("exchanges", () => {
  it("hand a reply to the engine under its lane and number", async () => {
    await send(2, 1);
    expect(coordinator.attempt(0).batch.seq).toBe(1);
    coordinator.attempt(0).answer(replyOf(0));
    await vi.advanceTimersByTimeAsync(0);
    expect(engine.heard.slice(1)).toEqual(["replied 2/1 after 0"]);
    expect(ends).toEqual(["ok", "reply after some time"]);
  });

  it("hand a late reply to the engine although the batch was sent again", async () => {
    await send(0, 1);
    await send(0, 1);
    coordinator.attempt(1).answer(replyOf(1));
    await vi.advanceTimersByTimeAsync(0);
    coordinator.attempt(0).answer(replyOf(0));
    await vi.advanceTimersByTimeAsync(0);
    expect(engine.heard.filter((line) => line.startsWith("replied"))).toEqual([
      "replied 0/1 after 1",
      "replied 0/1 after 0",
    ]);
  });

  it("tell the engine in the order in which lanes are answered, not asked", async () => {
    await send(0, 1);
    await send(1, 1);
    coordinator.attempt(1).answer(replyOf(0));
    coordinator.attempt(0).fail(new CoordinatorError("timeout", "no reply"));
    await vi.advanceTimersByTimeAsync(0);
    expect(engine.heard.slice(2)).toEqual(["replied 1/1 after 0", "failed 0/1 timeout"]);
  });

  it.each(["timeout", "unreachable", "refused", "malformed"] as const)(
    "tell the engine that one failed as %s, and go on",
    async (kind) => {
      await send(3, 9);
      coordinator.attempt(0).fail(new CoordinatorError(kind, "by the test"));
      await vi.advanceTimersByTimeAsync(0);
      expect(engine.heard.slice(1)).toEqual([`failed 3/9 ${kind}`]);
      expect(ends).toEqual([kind]);
      await send(3, 9);
      expect(coordinator.attempts).toHaveLength(2);
      expect(faults).toEqual([]);
    },
  );

  it("survive a coordinator that throws, or rejects with something of its own", async () => {
    await send(0, 1);
    coordinator.attempt(0).fail(new TypeError("undefined is not a function"));
    await vi.advanceTimersByTimeAsync(0);
    coordinator.throws = new Error("synchronous");
    await send(0, 1);
    expect(engine.heard.filter((line) => line.startsWith("failed"))).toEqual([
      "failed 0/1 malformed",
      "failed 0/1 malformed",
    ]);
    expect(faults).toEqual([]);
  });

  it("never pile up behind a coordinator that does not answer", async () => {
    for (let i = 0; i < PENDING_PER_LANE_MAX + 5; i += 1) await send(0, 1);
    expect(coordinator.attempts).toHaveLength(PENDING_PER_LANE_MAX);
    expect(engine.heard.filter((line) => line === "failed 0/1 timeout")).toHaveLength(5);
    await send(1, 1);
    expect(coordinator.attempts).toHaveLength(PENDING_PER_LANE_MAX + 1);
    coordinator.attempt(0).fail(new CoordinatorError("timeout", "at last"));
    await vi.advanceTimersByTimeAsync(0);
    await send(0, 1);
    expect(coordinator.attempts).toHaveLength(PENDING_PER_LANE_MAX + 2);
  });
});

describe("heartbeats", () => {
  it("reach the engine and count as calls of the store", () => {
    loop.membershipChanged({ pods: 3, silent: 1 });
    loop.membershipListed(30);
    loop.membershipFailed(new CoordinatorError("refused", "READONLY"));
    loop.membershipListed(undefined);
    expect(engine.heard).toEqual([
      "pods 3 silent 1",
      "listed 30",
      "membership failed",
      "listed undefined",
    ]);
    expect(ends).toEqual(["ok", "refused"]);
  });
});

describe("an exception of the engine", () => {
  const bug = new Error("invariant: the bucket holds half a token");
  const throwIn = (call: "decide" | "tick" | "replied" | "failed"): void => {
    engine.on[call] = () => {
      throw bug;
    };
  };

  it("in a check reaches onFault and the caller", () => {
    throwIn("decide");
    expect(() => loop.decide([CHECK])).toThrow(bug);
    expect(faults).toEqual([bug]);
  });

  it("in a tick reaches onFault", async () => {
    throwIn("tick");
    await send(0, 1);
    expect(faults).toEqual([bug]);
  });

  it("in a reply or a failure reaches onFault and is no rejection", async () => {
    throwIn("replied");
    throwIn("failed");
    await send(0, 1);
    await send(1, 1);
    coordinator.attempt(0).answer(replyOf(0));
    coordinator.attempt(1).fail(new CoordinatorError("timeout", "no reply"));
    await vi.advanceTimersByTimeAsync(0);
    expect(faults).toEqual([bug, bug]);
  });

  it("ends the wake-ups, so that a broken engine reports itself once", async () => {
    throwIn("tick");
    engine.wakeAt = nowUs();
    loop.start();
    await vi.advanceTimersByTimeAsync(50);
    expect(faults).toEqual([bug]);
  });

  it("is suspected when it answers a check that nobody holds", async () => {
    engine.script.push([{ kind: "answer", held: 3, decisions: [ADMITTED] }]);
    engine.wakeAt = nowUs();
    loop.start();
    await vi.advanceTimersByTimeAsync(1);
    expect(faults).toHaveLength(1);
    expect(String(faults[0])).toContain("check 3");
  });
});

describe("the leave", () => {
  it("ends when the engine has nothing left to tell", async () => {
    engine.script.push([{ kind: "exchange", batch: batchOf(0, 1) }]);
    engine.on.leave = () => {
      engine.wakeAt = nowUs();
    };
    engine.on.replied = () => {
      engine.settled = true;
    };
    let settled = false;
    const leave = loop.settle().then(() => {
      settled = true;
    });
    await vi.advanceTimersByTimeAsync(5);
    expect(engine.heard).toEqual(["leave", "tick"]);
    expect(settled).toBe(false);
    coordinator.attempt(0).answer(replyOf(0));
    await leave;
    expect(engine.heard).toEqual(["leave", "tick", "replied 0/1 after 0"]);
  });

  it("ends at once when nothing was left", async () => {
    engine.settled = true;
    await loop.settle();
    expect(engine.heard).toEqual(["leave"]);
  });
});
