/** Envoy as a program under test. */
import { existsSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { findEnvoy, type Program, startProgram } from "./program.ts";

const PYTHONS = fileURLToPath(new URL("../../.venv-envoy/lib", import.meta.url));

/** Undefined when this machine does not have it. */
export const envoyBinary: string | undefined = findEnvoy(
  existsSync(PYTHONS) ? readdirSync(PYTHONS) : [],
);

/** @param config - The whole bootstrap configuration, YAML or JSON. */
export function startEnvoy(config: string, port: number): Promise<Program> {
  return startProgram({
    binary: envoyBinary ?? "",
    files: { "envoy.yaml": config },
    args: (folder) => [
      ...["-c", `${folder}/envoy.yaml`, "--concurrency", "1", "-l", "warning"],
      "--disable-hot-restart",
    ],
    port,
  });
}
