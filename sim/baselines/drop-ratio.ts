/**
 * Drop ratio: no tokens, only the part of the requests that must go.
 *
 * Rule: every interval a pod reports what it was asked for; the store keeps a decayed sum D of the
 * fleet's demand per second (time constant five intervals) and answers max(0, (D - r) / D); until
 * the next answer the pod drops that part at random. Source: global random drop of "Cloud Control
 * with Distributed Rate Limiting" (SIGCOMM 2007) and Uber's limiter (2026: drop (actual - limit) /
 * actual).
 */
import type { Limit } from "../../src/core/limit.ts";
import type { InstantUs, Tokens } from "../../src/core/units.ts";
import { ALLOWED, DENIED, type NodeContext, type Scheme, type StoreProgram } from "../scheme.ts";
import { everyInterval } from "./every-interval.ts";

const TIMEOUT_US = 50_000;
/** Time constant of the demand, in intervals. */
const MEMORY = 5;

interface Demand {
  tokens: Tokens;
  atUs: InstantUs;
}

export class DemandStore implements StoreProgram {
  #demands: Map<string, Demand> = new Map();

  /** @returns The part of the requests to drop, 0 to 1. */
  report(limit: Limit, key: string, nowUs: InstantUs, asked: Tokens): number {
    const name = `${limit.name} ${key}`;
    const state = this.#demands.get(name) ?? { tokens: 0, atUs: nowUs };
    this.#demands.set(name, state);
    const memoryS = (MEMORY * limit.intervalUs) / 1e6;
    const passedS = Math.max(0, nowUs - state.atUs) / 1e6;
    state.tokens = state.tokens * Math.exp(-passedS / memoryS) + asked;
    state.atUs = Math.max(state.atUs, nowUs);
    const perSecond = state.tokens / memoryS;
    return perSecond > limit.rate ? (perSecond - limit.rate) / perSecond : 0;
  }

  snapshot(): () => void {
    const copy = structuredClone(this.#demands);
    return () => {
      this.#demands = structuredClone(copy);
    };
  }

  clear(): void {
    this.#demands.clear();
  }
}

interface Ratio {
  asked: Tokens;
  drop: number;
}

export const DROP_RATIO: Scheme<DemandStore> = {
  name: "drop-ratio",
  rule: "every pod drops the part (demand - r) / demand at random, refreshed every interval",
  source: "SIGCOMM 2007 (global random drop), Uber",
  start: () => ({
    store: new DemandStore(),
    node(context) {
      const ratios: readonly Map<string, Ratio>[] = context.limits.map(() => new Map());
      for (const [i, limit] of context.limits.entries()) {
        everyInterval(context, limit, () => {
          for (const [key, ratio] of ratios[i] ?? []) report(context, limit, key, ratio);
        });
      }
      return {
        request(checks, answer) {
          let isDropped = false;
          for (const { limit, key, cost } of checks) {
            const ratio = ratios[limit]?.get(key) ?? { asked: 0, drop: 0 };
            ratios[limit]?.set(key, ratio);
            ratio.asked += cost;
            isDropped = context.random.chance(ratio.drop) || isDropped;
          }
          answer(isDropped ? DENIED : ALLOWED);
        },
      };
    },
  }),
};

function report(context: NodeContext<DemandStore>, limit: Limit, key: string, ratio: Ratio): void {
  if (ratio.asked === 0) return;
  const { asked } = ratio;
  ratio.asked = 0;
  context.call({
    keys: [key],
    bytes: 200,
    timeoutUs: TIMEOUT_US,
    run: (store, nowUs) => store.report(limit, key, nowUs, asked),
    done(outcome) {
      if (outcome.ok) ratio.drop = outcome.reply;
    },
  });
}
