/** What a figure was measured on, in one line. */
import { spawnSync } from "node:child_process";
import { availableParallelism, cpus, loadavg, release } from "node:os";

export function machineLine(): string {
  const model = cpus()[0]?.model.trim() ?? "unknown processor";
  const load = loadavg()[0]?.toFixed(2) ?? "?";
  return (
    `${model}, ${availableParallelism()} cores, Linux ${release()}, node ${process.version}, ` +
    `load ${load} at the start`
  );
}

/** The command that pins a process to a core; undefined where there is one core or no taskset. */
export function pinning(core: number): readonly string[] | undefined {
  if (availableParallelism() < 2) return undefined;
  if (spawnSync("taskset", ["--version"], { stdio: "ignore" }).error !== undefined)
    return undefined;
  return ["taskset", "-c", String(core)];
}
