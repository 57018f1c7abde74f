/** One engine without a store, and a clock that the test moves. */
import type { Check, Decision } from "../../src/core/decision.ts";
import type { Limit } from "../../src/core/limit.ts";
import { PodLimiter } from "../../src/core/pod-limiter.ts";

export class SoleEngine {
  readonly engine: PodLimiter;
  now = 0;

  constructor(limits: readonly Limit[], keysMax = 100_000) {
    this.engine = new PodLimiter(
      {
        limits,
        sole: true,
        lanes: 1,
        commandTimeoutUs: 50_000,
        decisionTimeoutUs: 10_000,
        keysMax,
        podId: "only",
      },
      0,
    );
  }

  /** As a front door sees it: the decisions are written over by the next call. */
  decide(checks: readonly Check[]): readonly Decision[] {
    const outcome = this.engine.decide(this.now, checks);
    if ("held" in outcome) throw new Error("a pod without a store held a check");
    return outcome;
  }

  /** Decides at once; the decisions are the test's own. */
  checkAll(checks: readonly { limit: Limit; key?: string; cost?: number }[]): readonly Decision[] {
    const asked = checks.map(({ limit, key = "k", cost = 1 }) => ({ limit, key, cost }));
    return this.decide(asked).map((decision) => ({ ...decision }));
  }

  check(limit: Limit, cost = 1, key = "k"): Decision {
    return this.checkAll([{ limit, key, cost }])[0] as Decision;
  }

  tick(): void {
    while (this.engine.wakeAt <= this.now) this.engine.tick(this.now, () => 0.5);
  }
}
