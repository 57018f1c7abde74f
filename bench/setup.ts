/** How a benchmark of several processes is spread over the cores of a machine. */
import { spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";
import type { Waiting } from "./open-loop.ts";

/** A program and its arguments in front of node; undefined where nothing can be pinned. */
export type Command = readonly string[] | undefined;

export interface BenchSetup {
  /** The benchmark's own program. */
  readonly main: string;
  /** The first core, for who is measured. */
  readonly serverCommand: Command;
  /** The second one, for the load. */
  readonly clientCommand: Command;
  readonly rounds: { readonly count: number; readonly seconds: number };
}

/** @param main - The benchmark's own program. */
export function pinnedSetup(main: string, rounds: BenchSetup["rounds"]): BenchSetup {
  return { main, serverCommand: pinning(0), clientCommand: pinning(1), rounds };
}

/** What a load does between two requests. @param isShared - Redis has the same core. */
export function waitingOf({ clientCommand }: BenchSetup, isShared: boolean): Waiting {
  if (clientCommand === undefined) return "sleeping";
  return isShared ? "yielding" : "spinning";
}

/** The command that pins a process to a core; undefined where there is one core or no taskset. */
export function pinning(core: number): Command {
  return availableParallelism() >= 2 && isThere("taskset")
    ? ["taskset", "-c", String(core)]
    : undefined;
}

/** Moves a process with all its threads to the core of a command. */
export function moveTo(command: Command, pid: number): void {
  const core = command?.at(-1);
  if (core === undefined || pid === 0) return;
  const moved = spawnSync("taskset", ["-a", "-p", "-c", core, String(pid)], { stdio: "ignore" });
  if (moved.status !== 0) throw new Error(`process ${pid} could not be moved to core ${core}`);
}

function isThere(program: string): boolean {
  return spawnSync(program, ["--version"], { stdio: "ignore" }).error === undefined;
}
