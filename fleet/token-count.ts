/**
 * The books of a run: what the pods admitted of the counted limit, and what the store applied.
 *
 * That limit refills a token a day, so after the load has ended and everybody has told everything,
 * what is missing in the store is what was applied to it, token by token.
 */
import { type Arrival, LIMIT, OUTCOME } from "./journal.ts";
import { COUNTED_KEYS } from "./offered-load.ts";
import { COUNTED_NAME, FLEET_NAME, type Pod } from "./pod.ts";
import { missingTokens, stateName } from "./stored-tokens.ts";
import type { Topology } from "./topology.ts";

const SETTLED_WITHIN_MS = 15_000;
/** Leases end, and are given back, within this. */
const AGREED_WITHIN_MS = 5_000;
const POLL_MS = 100;

export interface TokenCount {
  /** Tokens that the answers to callers admitted. */
  readonly admitted: number;
  /** Checks of the counted limit that were denied. */
  readonly denied: number;
  /** Tokens that the store has applied; NaN when it could not be read. */
  readonly stored: number;
  /** Pods whose own counters differ from the answers that their callers got. */
  readonly differing: readonly string[];
  /** Whether every pod had told everything and was out of the fallback in the end. */
  readonly settled: boolean;
}

/** Admitted tokens of one limit by pod, as the answers to callers tell. */
export function admittedByPod(journal: Iterable<Arrival>, limit: number): Map<number, number> {
  const byPod = new Map<number, number>();
  for (const arrival of journal) {
    if (arrival.limit !== limit || arrival.outcome !== OUTCOME.admitted) continue;
    byPod.set(arrival.pod, (byPod.get(arrival.pod) ?? 0) + 1);
  }
  return byPod;
}

/** Waits until the pods have told everything, and compares. */
export async function countTokens(
  pods: readonly Pod[],
  topology: Topology,
  journal: Iterable<Arrival>,
): Promise<TokenCount> {
  const counted = admittedByPod(journal, LIMIT.counted);
  const admitted = [...counted.values()].reduce((sum, tokens) => sum + tokens, 0);
  const settled = await within(SETTLED_WITHIN_MS, async () => {
    const states = await Promise.all(pods.map((pod) => pod.isSettled()));
    return states.every((isSettled) => isSettled);
  });
  let stored = Number.NaN;
  await within(AGREED_WITHIN_MS, async () => {
    stored = await storedTokens(topology).catch(() => Number.NaN);
    return stored === admitted;
  });
  const measured = admittedByPod(journal, LIMIT.measured);
  const differing: string[] = [];
  for (const pod of pods) {
    const status = await pod.status();
    if (status === undefined) continue;
    const [own, ownCounted] = [measured.get(pod.number) ?? 0, counted.get(pod.number) ?? 0];
    if (status.admitted !== own || status.counted !== ownCounted) differing.push(pod.name);
  }
  let denied = 0;
  for (const { limit, outcome } of journal) {
    if (limit === LIMIT.counted && outcome === OUTCOME.denied) denied += 1;
  }
  return { admitted, denied, stored, differing, settled };
}

/** Rounded: what has refilled during a run is far below one token. */
async function storedTokens(topology: Topology): Promise<number> {
  const client = await topology.client();
  let tokens = 0;
  for (const key of COUNTED_KEYS) {
    tokens += await missingTokens(client, stateName(FLEET_NAME, COUNTED_NAME, key));
  }
  return Math.round(tokens);
}

/** Asks again and again until the answer is yes. @returns Whether it came in time. */
async function within(ms: number, holds: () => Promise<boolean>): Promise<boolean> {
  const deadline = performance.now() + ms;
  while (!(await holds())) {
    if (performance.now() > deadline) return false;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  return true;
}
