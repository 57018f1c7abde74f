/** The harness as a process of its own, from the build of this test run. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { inject } from "vitest";
import type { Claim } from "../../fleet/claims.ts";
import type { LimitStanding } from "../../fleet/pod.ts";
import type { TokenCount } from "../../fleet/token-count.ts";
import type { Phase } from "../../fleet/verdict.ts";
import type { Sight } from "../../fleet/watch.ts";

/** What `--json` prints, as far as tests read it. */
export interface Report {
  readonly verdict: {
    readonly offered: number;
    readonly admitted: number;
    readonly denied: number;
    readonly failed: number;
    readonly certainExcess: { readonly tokens: number };
    readonly utilisation: number;
    /** Checks by upper bound of the time they took inside the pods. */
    readonly decisionTimesMs: Readonly<Record<string, number>>;
    readonly phases: readonly Phase[];
    readonly scriptCalls: number;
    readonly admittedByPods: Readonly<Record<string, number>>;
    readonly claims: readonly Claim[];
    readonly standing: LimitStanding;
    readonly count?: TokenCount;
  };
  readonly seconds: readonly { readonly admitted: number }[];
  readonly sights: readonly Sight[];
}

export class FleetProcess {
  readonly child: ChildProcess;
  readonly exited: Promise<number | null>;
  output = "";

  constructor(args: readonly string[]) {
    const build = inject("sidecarBuild");
    if ("trouble" in build) throw new Error(build.trouble);
    const main = fileURLToPath(new URL("../fleet/main.js", `file://${build.main}`));
    this.child = spawn(process.execPath, [main, ...args], { stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.output += text;
      });
    }
    this.exited = new Promise((resolve) => this.child.once("close", (code) => resolve(code)));
  }

  /** All living processes below it, and their own children. */
  descendants(): number[] {
    const found = [this.child.pid ?? 0];
    const rows = execFileSync("ps", ["-eo", "pid=,ppid="], { encoding: "utf8" })
      .trim()
      .split("\n")
      .map((row) => row.trim().split(/\s+/).map(Number));
    for (let i = 0; i < found.length; i += 1) {
      for (const [pid = 0, parent] of rows) if (parent === found[i]) found.push(pid);
    }
    return found.slice(1);
  }
}

/**
 * Plays a run to its end, whether its claims hold or not.
 *
 * @throws {Error} With everything printed when it fails.
 */
export async function report(...args: readonly string[]): Promise<Report> {
  const fleet = new FleetProcess([...args, "--json"]);
  const code = await fleet.exited;
  if (code !== 0 && code !== 3) throw new Error(`the harness ended with ${code}:\n${fleet.output}`);
  return JSON.parse(fleet.output) as Report;
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
