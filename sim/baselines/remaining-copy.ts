/**
 * Naive: spend the last seen remaining. Every pod keeps a copy of the central bucket's level and
 * spends it as if it were alone; every interval it reports what it spent and reads the level anew.
 *
 * Rule: admit while the copy covers the cost; report and refresh every interval when something was
 * asked. Source: the synchronised counters of IBM Security Verify Access ("a client can exhaust one
 * instance and go on at others"), Kong and APISIX with a sync interval, Limitador's cached Redis.
 */
import type { Limit } from "../../src/core/limit.ts";
import type { InstantUs, Tokens } from "../../src/core/units.ts";
import { ALLOWED, DENIED, type NodeContext, type Scheme, type StoreProgram } from "../scheme.ts";
import { everyInterval } from "./every-interval.ts";

const TIMEOUT_US = 50_000;

interface Level {
  level: Tokens;
  atUs: InstantUs;
}

/** Buckets that may go into debt. */
export class RemainingStore implements StoreProgram {
  #levels: Map<string, Level> = new Map();

  /** @returns Tokens left after `spent` is taken, at least 0. */
  report(limit: Limit, key: string, nowUs: InstantUs, spent: Tokens): Tokens {
    const name = `${limit.name} ${key}`;
    const state = this.#levels.get(name) ?? { level: limit.burst, atUs: nowUs };
    this.#levels.set(name, state);
    const passedS = Math.max(0, nowUs - state.atUs) / 1e6;
    state.level = Math.min(limit.burst, state.level + passedS * limit.rate) - spent;
    state.atUs = Math.max(state.atUs, nowUs);
    return Math.max(0, Math.floor(state.level));
  }

  snapshot(): () => void {
    const copy = structuredClone(this.#levels);
    return () => {
      this.#levels = structuredClone(copy);
    };
  }

  clear(): void {
    this.#levels.clear();
  }
}

interface Copy {
  remaining: Tokens;
  spent: Tokens;
  /** Something was asked since the last report. */
  isAsked: boolean;
  isSyncing: boolean;
}

export const REMAINING_COPY: Scheme<RemainingStore> = {
  name: "remaining-copy",
  rule: "every pod spends the remaining that it last saw, refreshed every interval",
  source: "IBM Verify Access, Kong and APISIX with a sync interval, Limitador cached",
  start: () => ({
    store: new RemainingStore(),
    node(context) {
      const copies: readonly Map<string, Copy>[] = context.limits.map(() => new Map());
      for (const [i, limit] of context.limits.entries()) {
        everyInterval(context, limit, () => {
          for (const [key, copy] of copies[i] ?? []) sync(context, limit, key, copy);
        });
      }
      return {
        request(checks, answer) {
          const asked = checks.map(({ limit, key }) => {
            const known = copies[limit]?.get(key);
            const copy = known ?? fresh(context.limits[limit]);
            if (known === undefined) copies[limit]?.set(key, copy);
            copy.isAsked = true;
            return copy;
          });
          const isCovered = checks.every(({ cost }, i) => (asked[i]?.remaining ?? 0) >= cost);
          for (const [i, { cost }] of checks.entries()) {
            const copy = asked[i];
            if (copy === undefined || !isCovered) continue;
            copy.remaining -= cost;
            copy.spent += cost;
          }
          answer(isCovered ? ALLOWED : DENIED);
        },
      };
    },
  }),
};

function fresh(limit: Limit | undefined): Copy {
  return { remaining: limit?.burst ?? 0, spent: 0, isAsked: false, isSyncing: false };
}

function sync(context: NodeContext<RemainingStore>, limit: Limit, key: string, copy: Copy): void {
  if (!copy.isAsked || copy.isSyncing) return;
  const { spent } = copy;
  copy.isAsked = false;
  copy.isSyncing = true;
  copy.spent = 0;
  context.call({
    keys: [key],
    bytes: 200,
    timeoutUs: TIMEOUT_US,
    run: (store, nowUs) => store.report(limit, key, nowUs, spent),
    done(outcome) {
      copy.isSyncing = false;
      // What was spent meanwhile is not in the store yet.
      if (outcome.ok) copy.remaining = Math.max(0, outcome.reply - copy.spent);
      else copy.spent += spent;
    },
  });
}
