/** The promises of the design as predicates over what a run measured. */
import type { DurationUs, Tokens } from "../src/core/units.ts";
import { type LimitResult, type RunResult, SERIES_STEP_US } from "./run-result.ts";
import type { Judgement, Verdict } from "./scenario.ts";

/** Nothing broke an invariant; the measured figure is how many did. */
export function safe(): Verdict {
  return atMost("no invariant is broken", 0, (result) => result.violations.length);
}

/** The excess of every limit stays below the stated bound (as a part of it). */
export function withinBound(): Verdict {
  return atMost("the excess is within the stated bound (part of it)", 1, (result) =>
    most(result.limits, ({ excess, bound }) => (excess === 0 ? 0 : excess / bound)),
  );
}

/** @param tokens - Largest excess over all keys of each limit. */
export function excessAtMost(tokens: Tokens): Verdict {
  return atMost(`at most ${tokens} tokens beyond b + r T in any span`, tokens, (result) =>
    most(result.limits, (limit) => limit.excess),
  );
}

/** @param part - Of the burst. */
export function excessPartOfBurst(part: number): Verdict {
  return atMost(`the excess is at most ${part} b (part of b)`, part, (result) =>
    most(result.limits, (limit) => limit.excess / limit.burst),
  );
}

/** What was admitted in all is at most r T + b, and the bound once. */
export function longRun(): Verdict {
  return atMost("in the long run at most r T + b (part of it, less the bound)", 1, (result) => {
    const seconds = result.durationUs / 1e6;
    return most(result.limits, (limit) => {
      const perKey = limit.burst + limit.rate * seconds;
      return (limit.admitted - limit.keys * limit.bound) / (limit.keys * perKey);
    });
  });
}

/** Use of the limits against ideal buckets, all limits together. */
export function utilisationAtLeast(part: number): Verdict {
  return atLeast(`at least ${part} of what ideal buckets admit`, part, utilisationOf);
}

export function utilisationAtMost(part: number): Verdict {
  return atMost(`at most ${part} of what ideal buckets admit`, part, utilisationOf);
}

/** Admitted tokens per second within a span of the run, as a part of the first limit's rate. */
export function rateAtMost(fromUs: DurationUs, toUs: DurationUs, part: number): Verdict {
  return atMost(
    `from ${fromUs / 1e6} s to ${toUs / 1e6} s at most ${part} r (part of r)`,
    part,
    (result) => ratePart(result, fromUs, toUs),
  );
}

export function rateAtLeast(fromUs: DurationUs, toUs: DurationUs, part: number): Verdict {
  return atLeast(
    `from ${fromUs / 1e6} s to ${toUs / 1e6} s at least ${part} r (part of r)`,
    part,
    (result) => ratePart(result, fromUs, toUs),
  );
}

/** After each mark the fleet is back within 5 % of the ideal in this time (seconds). */
export function settlesWithin(us: DurationUs): Verdict {
  return atMost(`back to the ideal rate within ${us / 1e6} s of every mark (s)`, us / 1e6, (r) =>
    most(r.settling, (settling) => settling.settledAfterUs / 1e6),
  );
}

export function jainAtLeast(index: number): Verdict {
  return atLeast(`pods fare alike: Jain's index at least ${index}`, index, (r) => r.fleet.jain);
}

export function callsPerAdmitAtMost(calls: number): Verdict {
  return atMost(`at most ${calls} store calls per admitted token`, calls, (result) =>
    Number.isFinite(result.cost.callsPerAdmit) ? result.cost.callsPerAdmit : 0,
  );
}

export function heldPartAtMost(part: number): Verdict {
  return atMost(`at most ${part} of the requests wait for the store`, part, (result) => {
    return result.latency.heldPart;
  });
}

/** No request waits longer than the decision timeout, with slack for one timer. */
export function answeredWithin(us: DurationUs): Verdict {
  return atMost(`every request is answered within ${us / 1e3} ms (ms)`, us / 1e3, (result) => {
    return result.latency.maxUs / 1e3;
  });
}

export function podsErrorAtMost(pods: number): Verdict {
  return atMost(`at the end no pod is wrong about N by more than ${pods}`, pods, (result) => {
    return result.integrity.podsError;
  });
}

export function duplicatesAbsorbed(): Verdict {
  return atLeast("repeated batches reach the store and are absorbed", 1, (result) => {
    return result.integrity.duplicatesAbsorbed;
  });
}

function atMost(promise: string, allowed: number, of: (result: RunResult) => number): Verdict {
  return verdict(promise, allowed, of, (measured) => measured <= allowed + 1e-9);
}

function atLeast(promise: string, allowed: number, of: (result: RunResult) => number): Verdict {
  return verdict(promise, allowed, of, (measured) => measured >= allowed - 1e-9);
}

function verdict(
  promise: string,
  allowed: number,
  of: (result: RunResult) => number,
  passes: (measured: number) => boolean,
): Verdict {
  return {
    promise,
    judge(result): Judgement {
      const measured = of(result);
      return { passed: passes(measured), measured, allowed };
    },
  };
}

function most<Item>(items: readonly Item[], of: (item: Item) => number): number {
  return items.reduce((largest, item) => Math.max(largest, of(item)), 0);
}

function utilisationOf(result: RunResult): number {
  const sum = (of: (limit: LimitResult) => number): number =>
    result.limits.reduce((total, limit) => total + of(limit), 0);
  const ideal = sum((limit) => limit.idealMeasured);
  return ideal === 0 ? 1 : sum((limit) => limit.admittedMeasured) / ideal;
}

function ratePart(result: RunResult, fromUs: DurationUs, toUs: DurationUs): number {
  const limit = result.limits[0];
  if (limit === undefined) return 0;
  const [from, to] = [Math.floor(fromUs / SERIES_STEP_US), Math.floor(toUs / SERIES_STEP_US)];
  let tokens = 0;
  for (let step = from; step < to; step += 1) tokens += limit.admittedSeries[step] ?? 0;
  return tokens / ((toUs - fromUs) / 1e6) / limit.rate;
}
