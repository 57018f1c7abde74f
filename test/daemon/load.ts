/** Offers checks to sidecars at a steady rate, whatever they answer, and counts what comes back. */
import type { Sidecar, Verdict } from "../support/sidecar.ts";

export interface Offer {
  readonly sidecar: Sidecar;
  readonly limit: string;
  readonly key: string;
  readonly perSecond: number;
}

export interface Served {
  allowed: number;
  denied: number;
  /** Requests that brought no decision: refused connections, statuses other than 200. */
  failed: number;
}

/** How often the load catches up with its schedule. */
const STEP_MS = 5;

/**
 * Offers `perSecond` checks for `forMs`, evenly spaced, and waits for the last answer. A generator
 * that fell behind catches up, so that the number offered does not depend on the machine.
 */
export async function offer(load: Offer, forMs: number): Promise<Served> {
  const served: Served = { allowed: 0, denied: 0, failed: 0 };
  const asked: Promise<void>[] = [];
  const start = performance.now();
  const total = Math.round((forMs / 1_000) * load.perSecond);
  while (asked.length < total) {
    const due = Math.floor(((performance.now() - start) / 1_000) * load.perSecond) + 1;
    while (asked.length < Math.min(due, total)) asked.push(askOnce(load, served));
    await new Promise((resolve) => setTimeout(resolve, STEP_MS));
  }
  await Promise.all(asked);
  return served;
}

async function askOnce(load: Offer, served: Served): Promise<void> {
  try {
    const answer = await load.sidecar.ask(load.limit, load.key);
    if (answer.status !== 200) throw new Error(`status ${answer.status}`);
    if ((JSON.parse(answer.body) as Verdict).allowed) served.allowed += 1;
    else served.denied += 1;
  } catch {
    served.failed += 1;
  }
}
