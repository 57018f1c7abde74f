/**
 * Compiles the project once per test run, so that tests can start the sidecar as users do.
 *
 * The build goes to a folder of its own and not to `dist`: two test runs, or a test run beside a
 * running `npm start`, must not pull the code from under each other's processes. The layout is that
 * of the image: package.json beside `dist`.
 */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TestProject } from "vitest/node";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const BUILDS = join(ROOT, "out");
const PREFIX = "test-build-";

declare module "vitest" {
  export interface ProvidedContext {
    /** The compiled `main.js`, or why there is none. */
    sidecarBuild: { readonly main: string } | { readonly trouble: string };
  }
}

export function setup(project: TestProject): () => void {
  removeOrphans();
  const folder = join(BUILDS, `${PREFIX}${process.pid}`);
  mkdirSync(folder, { recursive: true });
  project.provide("sidecarBuild", build(folder));
  return () => rmSync(folder, { recursive: true, force: true });
}

function build(folder: string): { main: string } | { trouble: string } {
  const compiler = join(ROOT, "node_modules", "typescript", "bin", "tsc");
  const dist = join(folder, "dist");
  const args = [compiler, "-p", "tsconfig.build.json", "--outDir", dist];
  const compiled = spawnSync(process.execPath, args, { cwd: ROOT, encoding: "utf8" });
  cpSync(join(ROOT, "lua"), join(dist, "lua"), { recursive: true });
  cpSync(join(ROOT, "package.json"), join(folder, "package.json"));
  const main = join(dist, "src", "main.js");
  // Types are the business of `npm run check`; tests of a sidecar need the code that was emitted.
  if (existsSync(main)) return { main };
  return { trouble: `no main.js after compiling: ${compiled.stdout}${compiled.stderr}` };
}

/** A run that was killed leaves its folder behind; its name tells whether the run still lives. */
function removeOrphans(): void {
  if (!existsSync(BUILDS)) return;
  for (const name of readdirSync(BUILDS)) {
    if (!name.startsWith(PREFIX) || isAlive(Number(name.slice(PREFIX.length)))) continue;
    rmSync(join(BUILDS, name), { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
