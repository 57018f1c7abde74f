/** An engine that does what a test says and remembers what it was told, in order. */
import type { Check, Decision } from "../../src/core/decision.ts";
import type { Effect, Held, MembershipView } from "../../src/core/effect.ts";
import type { Batch, BatchReply } from "../../src/core/exchange.ts";
import { defineLimit, type Limit } from "../../src/core/limit.ts";
import type { Figures } from "../../src/core/tally.ts";
import type { Engine } from "../../src/runtime/engine.ts";

export const LIMIT: Limit = defineLimit({
  name: "api",
  tokens: 10,
  spanUs: 1_000_000,
  burst: 10,
  intervalUs: 100_000,
  fallback: { policy: "local", margin: 0.9, maxPods: 20 },
});

export const CHECK: Check = { limit: LIMIT, key: "k", cost: 1 };

export const ADMITTED: Decision = {
  limit: LIMIT,
  allowed: true,
  wouldDeny: false,
  reason: undefined,
  remaining: 9,
  resetAfterUs: 100_000,
  retryAfterUs: 0,
  source: "local",
  degraded: false,
};

export function batchOf(lane: number, seq: number): Batch {
  return {
    lane,
    seq,
    epoch: 0,
    heardAtUs: 0,
    heardAgoUs: 0,
    pods: 1,
    hold: 0,
    limits: [],
    keys: [],
    entries: new Float64Array(0),
  };
}

export function replyOf(previousSeq: number): BatchReply {
  return { nowUs: 1, epoch: 1, previousSeq, duplicate: false, entries: new Float64Array(0) };
}

/** A call, by the first word of its line in `heard`. */
type Call = "decide" | "report" | "tick" | "replied" | "failed" | "pods" | "leave" | "call";

export class ScriptedEngine implements Engine {
  wakeAt: number = Number.POSITIVE_INFINITY;
  settled = false;
  /** Calls in order, one line each. */
  readonly heard: string[] = [];
  /** What the next ticks return, first come first served; without one a tick sleeps for ever. */
  readonly script: Effect[][] = [];
  decideAnswer: readonly Decision[] | Held = [ADMITTED];
  /** Runs inside the named call, to change the engine or to throw. */
  readonly on: { [call in Call]?: () => void } = {};

  decide(): readonly Decision[] | Held {
    this.hear("decide");
    return this.decideAnswer;
  }

  report(): Decision {
    this.hear("report");
    return ADMITTED;
  }

  tick(_now: number, draw: () => number): Effect[] {
    const chance = draw();
    if (chance < 0 || chance >= 1) throw new Error(`a draw of ${chance}`);
    this.wakeAt = Number.POSITIVE_INFINITY;
    this.hear("tick");
    return this.script.shift() ?? [];
  }

  replied(_now: number, lane: number, seq: number, reply: BatchReply): void {
    this.hear(`replied ${lane}/${seq} after ${reply.previousSeq}`);
  }

  failed(_now: number, lane: number, seq: number, trouble: string): void {
    this.hear(`failed ${lane}/${seq} ${trouble}`);
  }

  callReplied(_now: number, id: number): void {
    this.hear(`call ${id} replied`);
  }

  callFailed(_now: number, id: number, trouble: string): void {
    this.hear(`call ${id} ${trouble}`);
  }

  largeCosts(): readonly string[] {
    return [];
  }

  standing(): never {
    throw new Error("not scripted");
  }

  membershipChanged(_now: number, view: MembershipView): void {
    this.hear(`pods ${view.pods} silent ${view.silent}`);
  }

  membershipListed(_now: number, pods: number | undefined): void {
    this.hear(`listed ${pods}`);
  }

  membershipFailed(): void {
    this.hear("membership failed");
  }

  configChanged(_now: number, limits: readonly Limit[]): void {
    this.hear(`limits ${limits.map((limit) => limit.name).join(",")}`);
  }

  beginLeave(): void {
    this.hear("leave");
  }

  counts(): never {
    throw new Error("not scripted");
  }

  figures(): Figures {
    throw new Error("not scripted");
  }

  private hear(line: string): void {
    this.heard.push(line);
    this.on[line.split(" ")[0] as Call]?.();
  }
}
