/**
 * The rhythm of schemes that talk to the store now and then: jittered, with a random first phase.
 */
import type { Limit } from "../../src/core/limit.ts";
import type { NodeContext } from "../scheme.ts";

type Rhythm = Pick<NodeContext<unknown>, "after" | "random">;

/** Runs `each` every interval of the limit, give or take a tenth. */
export function everyInterval(context: Rhythm, limit: Limit, each: () => void): void {
  const delayUs = (): number => Math.round(limit.intervalUs * context.random.between(0.9, 1.1));
  const tick = (): void => {
    each();
    context.after(delayUs(), tick);
  };
  context.after(Math.round(limit.intervalUs * context.random.draw()), tick);
}
