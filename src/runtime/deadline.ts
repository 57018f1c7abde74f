/** Waiting that ends. Everything the daemon waits for has one of these around it. */
import { type DurationUs, US_PER_MS } from "../core/units.ts";

/**
 * Waits for `work`, but no longer than `withinUs`.
 *
 * @returns Whether the work ended in time. What it does later is its own business: a rejection
 *   after the deadline is ignored, one before it is thrown.
 */
export async function endsWithin(work: Promise<unknown>, withinUs: DurationUs): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), Math.max(0, withinUs) / US_PER_MS);
  });
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
