/**
 * Schemes that ask a central counter for every check: one store trip each, in turn, and the first
 * denial ends the request. What the checks before it have spent stays spent, as these systems do.
 *
 * A rule is a small function over one key's state; the network, its faults and the price of a trip
 * come from the world. When the trip fails the request passes: the default of Envoy's rate limit
 * filter (`failure_mode_deny: false`), of Kong (`fault_tolerant`) and of most others.
 */
import type { Limit } from "../../src/core/limit.ts";
import type { DurationUs, InstantUs, Tokens } from "../../src/core/units.ts";
import {
  ALLOWED,
  type Answer,
  DENIED,
  type NodeContext,
  type Scheme,
  type SimCheck,
  type StoreProgram,
} from "../scheme.ts";

const TIMEOUT_US = 50_000;
/** Bytes of a short command and its reply. */
const CALL_BYTES = 200;

/** How one key is kept and asked. `State` is plain data. */
export interface CentralRule<State> {
  readonly name: string;
  readonly rule: string;
  readonly source: string;
  fresh(limit: Limit, nowUs: InstantUs): State;
  /** Decides and changes the state. */
  admit(state: State, limit: Limit, nowUs: InstantUs, cost: Tokens): Answer;
}

export class CentralStore<State> implements StoreProgram {
  #states: Map<string, State> = new Map();
  readonly #rule: CentralRule<State>;

  constructor(rule: CentralRule<State>) {
    this.#rule = rule;
  }

  admit(limit: Limit, key: string, nowUs: InstantUs, cost: Tokens): Answer {
    const name = `${limit.name} ${key}`;
    let state = this.#states.get(name);
    if (state === undefined) {
      state = this.#rule.fresh(limit, nowUs);
      this.#states.set(name, state);
    }
    return this.#rule.admit(state, limit, nowUs, cost);
  }

  snapshot(): () => void {
    const copy = structuredClone(this.#states);
    return () => {
      this.#states = structuredClone(copy);
    };
  }

  clear(): void {
    this.#states.clear();
  }
}

export function centralScheme<State>(rule: CentralRule<State>): Scheme<CentralStore<State>> {
  return {
    name: rule.name,
    rule: rule.rule,
    source: rule.source,
    start: () => ({
      store: new CentralStore(rule),
      node: (context) => ({
        request: (checks, answer) => ask(context, checks, 0, answer),
      }),
    }),
  };
}

function ask<State>(
  context: NodeContext<CentralStore<State>>,
  checks: readonly SimCheck[],
  index: number,
  answer: (answer: Answer) => void,
): void {
  const check = checks[index];
  const limit = check === undefined ? undefined : context.limits[check.limit];
  if (check === undefined || limit === undefined) {
    answer(ALLOWED);
    return;
  }
  context.call({
    keys: [check.key],
    bytes: CALL_BYTES,
    timeoutUs: TIMEOUT_US,
    run: (store, nowUs) => store.admit(limit, check.key, nowUs, check.cost),
    done(outcome) {
      if (outcome.ok && !outcome.reply.allowed) answer(outcome.reply);
      else ask(context, checks, index + 1, answer);
    },
  });
}

export function deniedFor(waitUs: DurationUs): Answer {
  return { ...DENIED, retryAfterUs: Math.max(1, Math.ceil(waitUs)) };
}

/**
 * Rules that count requests per span of time have no burst of their own. Theirs is the span in
 * which the rate refills the burst, so that they promise what a bucket promises, and at least one
 * second.
 */
export function countingSpanUs(limit: Limit): DurationUs {
  return Math.max(1_000_000, Math.round((limit.burst / limit.rate) * 1e6));
}

/** Tokens that the rate gives in that span. */
export function tokensPerSpan(limit: Limit): Tokens {
  return Math.max(1, Math.round((limit.rate * countingSpanUs(limit)) / 1e6));
}
