/** Chance as the `Random` port: good enough for jitter, not for secrets. */
import type { Random } from "../ports/random.ts";

export class SystemRandom implements Random {
  draw(): number {
    return Math.random();
  }
}
