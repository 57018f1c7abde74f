/**
 * A decider for tests of the front doors: one exact token bucket per limit and key, on a clock that
 * the test moves.
 */
import type { Check, Decision } from "../../src/core/decision.ts";
import { defineLimit, type Limit, type LimitSpec, limitForKey } from "../../src/core/limit.ts";
import type { LimitStanding } from "../../src/core/mode-choice.ts";
import { Tally } from "../../src/core/tally.ts";
import { US_PER_SECOND } from "../../src/core/units.ts";
import type { Decider } from "../../src/ports/decider.ts";

interface Bucket {
  level: number;
  atUs: number;
}

export class ExactDecider implements Decider {
  nowUs = 0;
  /** Set to make checks wait: each is answered when the promise that this returns settles. */
  hold: (() => Promise<void> | undefined) | undefined;
  /** Limits that answer as `closed` ones do while the store is away. */
  readonly closed: Set<string> = new Set<string>();
  readonly tallies: Map<string, Tally> = new Map<string, Tally>();
  decided = 0;
  reported = 0;
  readonly #limits: ReadonlyMap<string, Limit>;
  readonly #buckets = new Map<string, Bucket>();

  constructor(limits: readonly Limit[]) {
    this.#limits = new Map(limits.map((limit) => [limit.name, limit]));
    for (const { name } of limits) this.tallies.set(name, new Tally());
  }

  get trackedKeys(): number {
    return this.#buckets.size;
  }

  limit(name: string): Limit | undefined {
    return this.#limits.get(name);
  }

  limits(): readonly Limit[] {
    return [...this.#limits.values()];
  }

  standing(limit: Limit): LimitStanding {
    const { intervalUs } = limit;
    return { mode: "hybrid", reason: "a test", intervalUs, boundTokens: 42 };
  }

  decide(checks: readonly Check[]): readonly Decision[] | Promise<readonly Decision[]> {
    const wait = this.hold?.();
    return wait === undefined ? this.#decide(checks) : wait.then(() => this.#decide(checks));
  }

  #decide(checks: readonly Check[]): readonly Decision[] {
    this.decided += 1;
    const missing = checks.map((check) => this.#missing(check));
    const spend = checks.every((check, index) => check.limit.shadow || missing[index] === 0);
    return checks.map((check, index) => {
      const { limit, cost } = check;
      const short = missing[index] ?? 0;
      const closed = this.closed.has(limit.name);
      if (spend && short === 0 && !closed) this.#bucket(check).level -= cost;
      const decision = this.#state(check, short, closed);
      this.tallies.get(limit.name)?.count(decision, cost);
      return decision;
    });
  }

  report(check: Check): Decision {
    this.reported += 1;
    const bucket = this.#bucket(check);
    bucket.level = Math.min(limitForKey(check.limit, check.key).burst, bucket.level - check.cost);
    return this.#state(check, 0, false);
  }

  /** Tokens that the check lacks now; Infinity when it can never pass. */
  #missing(check: Check): number {
    const { burst } = limitForKey(check.limit, check.key);
    const cost = Math.max(1, check.cost);
    return cost > burst ? Infinity : Math.max(0, cost - this.#bucket(check).level);
  }

  #state(check: Check, missing: number, closed: boolean): Decision {
    const limit = limitForKey(check.limit, check.key);
    const { level } = this.#bucket(check);
    const denied = missing > 0 || closed;
    const short = missing === Infinity ? "cost_exceeds_burst" : "limit_exceeded";
    return {
      limit,
      allowed: !denied || limit.shadow,
      wouldDeny: denied && limit.shadow,
      reason: denied ? (closed ? "store_unavailable" : short) : undefined,
      remaining: Math.max(0, Math.floor(level)),
      resetAfterUs: ((limit.burst - level) / limit.rate) * US_PER_SECOND,
      retryAfterUs:
        denied && !limit.shadow
          ? closed
            ? US_PER_SECOND
            : (missing / limit.rate) * US_PER_SECOND
          : 0,
      source: closed ? "fallback" : "local",
      degraded: closed,
    };
  }

  #bucket(check: Check): Bucket {
    const limit = limitForKey(check.limit, check.key);
    const id = `${check.limit.name}\n${check.key}`;
    const bucket = this.#buckets.get(id) ?? { level: limit.burst, atUs: this.nowUs };
    const refill = ((this.nowUs - bucket.atUs) / US_PER_SECOND) * limit.rate;
    bucket.level = Math.min(limit.burst, bucket.level + refill);
    bucket.atUs = this.nowUs;
    this.#buckets.set(id, bucket);
    return bucket;
  }
}

/** A limit of `tokens` per second unless the spec says otherwise. */
export function limitOf(name: string, spec: Partial<LimitSpec> = {}): Limit {
  return defineLimit({
    name,
    tokens: 1,
    spanUs: US_PER_SECOND,
    burst: 10,
    intervalUs: 100_000,
    fallback: { policy: "local", margin: 0.9, maxPods: 20 },
    ...spec,
  });
}

export const HOUR_US: number = 3_600 * US_PER_SECOND;
