/** Reading all that has come, before something is done that would lose it. */
import { setImmediate as turnEnds } from "node:timers/promises";

/**
 * Resolves when everything is read that has come by now, also over connections that wait to be
 * accepted.
 *
 * A connection is accepted in one turn of the event loop and read in the next. The first of the
 * three waits ends in this turn, which may have done its reading already.
 */
export async function allRead(): Promise<void> {
  await turnEnds();
  await turnEnds();
  await turnEnds();
}
