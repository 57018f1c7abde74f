/** Waiting for something that only asking can tell; the tests wait by it too. */
const POLL_MS = 10;

/** Asks every few milliseconds until the answer is yes. @throws When the time is over. */
export async function until(
  what: string,
  withinMs: number,
  holds: () => Promise<boolean> | boolean,
): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`not within ${withinMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
