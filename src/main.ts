#!/usr/bin/env node
/** The program: connects the command line to this process. */
import { hostname } from "node:os";
import { runCli } from "./cli/run.ts";
import { processTerminal } from "./cli/terminal.ts";

// A reader that went away (`aliquot schema | head`) is no reason to end a sidecar.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});

try {
  process.exitCode = await runCli(process.argv.slice(2), {
    stdout: (text) => void process.stdout.write(text),
    stderr: (text) => void process.stderr.write(text),
    env: process.env,
    hostname: hostname(),
    terminal: processTerminal(),
  });
} catch (error) {
  const trace = error instanceof Error ? (error.stack ?? error.message) : String(error);
  process.stderr.write(`aliquot: unexpected error: ${trace}\n`);
  process.exitCode = 1;
}
