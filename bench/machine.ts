/** What a figure was measured on, in one line. */
import { availableParallelism, cpus, loadavg, release } from "node:os";

export function machineLine(): string {
  const model = cpus()[0]?.model.trim() ?? "unknown processor";
  const load = loadavg()[0]?.toFixed(2) ?? "?";
  return (
    `${model}, ${availableParallelism()} cores, Linux ${release()}, node ${process.version}, ` +
    `load ${load} at the start`
  );
}
