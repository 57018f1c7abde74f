/**
 * Charging denied checks, for limits whose `on_deny` is `debit`.
 *
 * Some callers tell of a cost that is already used up (Envoy's `apply_on_stream_done`): there a
 * denial must not mean that nothing is spent. Each limit of a denied check decides for itself; the
 * engine stays as it is, since a report does exactly this.
 */
import type { Check, Decision } from "../core/decision.ts";
import { type Limit, limitForKey } from "../core/limit.ts";
import type { LimitStanding } from "../core/mode-choice.ts";
import type { Decider } from "../ports/decider.ts";

/** Spends the costs of a denied check in those of its limits that want it. */
export function chargeDenied(decider: Decider, checks: readonly Check[]): void {
  for (const check of checks) {
    if (check.cost === 0 || check.limit.onDeny !== "debit") continue;
    if (!isInForce(decider, check)) continue;
    const { burst, maxDebt } = limitForKey(check.limit, check.key);
    // No bucket can owe more, and the arithmetic is exact up to here.
    decider.report({ ...check, cost: Math.min(check.cost, burst + maxDebt) });
  }
}

/** A reload may have removed the limit of a check while the check waited for the store. */
export function isInForce(decider: Decider, { limit }: Check): boolean {
  return decider.limit(limit.name) !== undefined;
}

/** A decider that charges what it denies, where the limits want it. */
export class ChargingDecider implements Decider {
  readonly #decider: Decider;

  constructor(decider: Decider) {
    this.#decider = decider;
  }

  limit(name: string): ReturnType<Decider["limit"]> {
    return this.#decider.limit(name);
  }

  limits(): ReturnType<Decider["limits"]> {
    return this.#decider.limits();
  }

  standing(limit: Limit): LimitStanding {
    return this.#decider.standing(limit);
  }

  decide(checks: readonly Check[]): readonly Decision[] | Promise<readonly Decision[]> {
    const decided = this.#decider.decide(checks);
    if (decided instanceof Promise) return decided.then((each) => this.#charge(checks, each));
    return this.#charge(checks, decided);
  }

  report(check: Check): Decision {
    return this.#decider.report(check);
  }

  #charge(checks: readonly Check[], decisions: readonly Decision[]): readonly Decision[] {
    if (isDecidedAgainst(decisions)) chargeDenied(this.#decider, checks);
    return decisions;
  }
}

function isDecidedAgainst(decisions: readonly Decision[]): boolean {
  return decisions.some(isCertainDenial);
}

/** A limit that got no word from its store has decided nothing; another one may have. */
export function isCertainDenial({ allowed, reason }: Decision): boolean {
  return !allowed && reason?.startsWith("store_") !== true;
}
