/**
 * What the log says about the source that lists the fleet's pods: a line when its state changes.
 */
import type { Logger } from "pino";

export class MembershipSourceLog {
  readonly #logger: Logger;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  failing(error: unknown): void {
    const detail = error instanceof Error ? error.message : String(error);
    this.#logger.warn({ detail }, "the pods of the fleet cannot be listed; the last number holds");
  }

  recovered(pods: number): void {
    this.#logger.info({ pods }, "the pods of the fleet are listed again");
  }
}
