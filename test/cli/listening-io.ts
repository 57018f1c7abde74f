/** Runs a command line in process and keeps what it says. */
import { runCli } from "../../src/cli/run.ts";
import type { Terminal } from "../../src/cli/terminal.ts";
import type { Io } from "../../src/cli/verb.ts";

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export async function aliquot(
  args: readonly string[],
  env: Io["env"] = {},
  terminal?: Terminal,
): Promise<Ran> {
  let stdout = "";
  let stderr = "";
  const code = await runCli(args, {
    stdout: (text) => {
      stdout += text;
    },
    stderr: (text) => {
      stderr += text;
    },
    env,
    hostname: "host-1",
    terminal,
  });
  return { code, stdout, stderr };
}
