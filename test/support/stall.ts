/**
 * Keeps this process from running for a while, as a machine that is too busy does: no timer runs
 * and nothing is read. Afterwards timers come first, before anything is read that came meanwhile.
 */
export function stall(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
