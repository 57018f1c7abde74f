/** What a process has cost so far, to the nanosecond: `/proc/PID/stat` counts in ticks of 10 ms. */
import { readdirSync, readFileSync } from "node:fs";

/** Processor time of a process so far, in us: what the scheduler gave to each of its threads. */
export function processorUs(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  return threads.reduce((sum, thread) => {
    const schedstat = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "latin1");
    return sum + Number(schedstat.split(" ")[0]) / 1_000;
  }, 0);
}
