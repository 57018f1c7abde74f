/**
 * The graceful stop as a list of steps under one deadline. A step that hangs or fails is noted and
 * passed over: a store that is away must not keep the process alive, and a listener that cannot be
 * closed must not keep the pod in the fleet.
 */
import { type DurationUs, type InstantUs, US_PER_MS } from "../core/units.ts";
import type { Clock } from "../ports/clock.ts";
import { endsWithin } from "./deadline.ts";

export interface DrainStep {
  /** What the step does, for the log: "close the listeners". */
  readonly name: string;
  run(): Promise<unknown>;
}

/** A step that did not end well. */
export interface DrainTrouble {
  readonly name: string;
  /** The error, or undefined when the step ran out of time. */
  readonly error: unknown;
}

/**
 * Time kept for every step that is still to come, so that one that hangs does not starve the rest:
 * each of them is one round trip or less when all is well.
 */
export const STEP_RESERVE_US: DurationUs = 100 * US_PER_MS;

/**
 * Runs all steps in order and resolves no later than `withinUs` from now, give or take a timer.
 *
 * @returns The steps that failed or ran out of time; never rejects.
 */
export async function drain(
  steps: readonly DrainStep[],
  withinUs: DurationUs,
  clock: Clock,
): Promise<readonly DrainTrouble[]> {
  const deadline = clock.monotonicUs() + withinUs;
  const troubles: DrainTrouble[] = [];
  for (const [index, step] of steps.entries()) {
    const reserveUs = Math.min(STEP_RESERVE_US, withinUs / steps.length);
    const until = deadline - (steps.length - 1 - index) * reserveUs;
    const trouble = await perform(step, until, clock);
    if (trouble !== undefined) troubles.push(trouble);
  }
  return troubles;
}

async function perform(
  step: DrainStep,
  until: InstantUs,
  clock: Clock,
): Promise<DrainTrouble | undefined> {
  try {
    const ended = await endsWithin(step.run(), until - clock.monotonicUs());
    return ended ? undefined : { name: step.name, error: undefined };
  } catch (error) {
    return { name: step.name, error };
  }
}
