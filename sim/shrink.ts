/**
 * Makes a failing plan of faults smaller while the failure stays: drop parts of the plan (halves
 * first, then single lines, as in delta debugging), then halve durations and sets of pods.
 */
import type { Fault } from "./fault-plan.ts";

/** Runs that one shrinking may cost. */
const TRIALS_MAX = 200;

/**
 * @param fails - Runs the plan; true when it still shows the failure.
 * @returns The smallest plan found, which fails; the given plan when nothing smaller does.
 */
export async function shrinkPlan(
  plan: readonly Fault[],
  fails: (plan: readonly Fault[]) => Promise<boolean>,
): Promise<readonly Fault[]> {
  let trials = 0;
  const stillFails = async (candidate: readonly Fault[]): Promise<boolean> => {
    trials += 1;
    return trials <= TRIALS_MAX && (await fails(candidate));
  };
  let smallest = plan;
  for (let size = smallest.length; size >= 1 && smallest.length > 0; ) {
    const smaller = await dropOne(smallest, size, stillFails);
    if (smaller === undefined) size = Math.floor(size / 2);
    else {
      smallest = smaller;
      size = Math.min(size, smallest.length);
    }
  }
  for (let i = 0; i < smallest.length; i += 1) {
    for (;;) {
      const gentler = await firstFailing(gentlerPlans(smallest, i), stillFails);
      if (gentler === undefined) break;
      smallest = gentler;
    }
  }
  return smallest;
}

async function dropOne(
  plan: readonly Fault[],
  size: number,
  fails: (plan: readonly Fault[]) => Promise<boolean>,
): Promise<readonly Fault[] | undefined> {
  for (let from = 0; from < plan.length; from += size) {
    const rest = plan.filter((_, i) => i < from || i >= from + size);
    if (await fails(rest)) return rest;
  }
  return undefined;
}

async function firstFailing(
  candidates: readonly (readonly Fault[])[],
  fails: (plan: readonly Fault[]) => Promise<boolean>,
): Promise<readonly Fault[] | undefined> {
  for (const candidate of candidates) if (await fails(candidate)) return candidate;
  return undefined;
}

/** The plan with one fault made gentler in each of the ways that its kind allows. */
function gentlerPlans(plan: readonly Fault[], index: number): Fault[][] {
  const fault = plan[index];
  if (fault === undefined) return [];
  const gentler: Fault[] = [];
  if ("forUs" in fault && fault.forUs >= 200_000) {
    gentler.push({ ...fault, forUs: Math.floor(fault.forUs / 2) });
  }
  if ("pods" in fault && fault.pods.length > 1) {
    const half = Math.ceil(fault.pods.length / 2);
    gentler.push({ ...fault, pods: fault.pods.slice(0, half) });
    gentler.push({ ...fault, pods: fault.pods.slice(half) });
  }
  if (fault.kind === "join" && fault.count > 1) {
    gentler.push({ ...fault, count: Math.floor(fault.count / 2) });
  }
  return gentler.map((one) => plan.map((other, i) => (i === index ? one : other)));
}
