/** `aliquot serve`: runs the sidecar until it is told to stop. */
import {
  CONFIG_OPTION,
  DEFAULT_CONFIG_PATH,
  namedConfigPath,
  problemLines,
  readerOf,
  SETTING_OPTIONS,
} from "./configuration.ts";
import { EXIT, type Verb } from "./verb.ts";
import { packageVersion } from "./version.ts";

export const serve: Verb = {
  name: "serve",
  summary: "Run the sidecar (the default verb).",
  operands: "",
  operandCount: [0, 0],
  options: [CONFIG_OPTION, ...SETTING_OPTIONS],
  examples: [
    ["aliquot serve --config examples/quickstart.yaml", "one sidecar, embedded store"],
    ["aliquot serve --redis-url redis://localhost:6379 --fleet f", "the same limits for a fleet"],
    ["ALIQUOT_OPS=off aliquot", "every flag has an environment variable"],
  ],
  async run({ flags }, io) {
    const reader = readerOf(namedConfigPath(flags, io) ?? DEFAULT_CONFIG_PATH, flags, io);
    const version = packageVersion();
    // A worker is told its configuration by the process that started it.
    if (await isWorker()) {
      const { serveAsWorker } = await import("../daemon.ts");
      return serveAsWorker({ stdout: io.stdout, version, reader });
    }
    const reading = await reader.read();
    const { config, problems } = reading.load();
    if (config === undefined) {
      io.stderr(problemLines(problems));
      return EXIT.usage;
    }
    // Loaded only here: the short verbs start in a fraction of the time.
    const { startSidecar } = await import("../daemon.ts");
    try {
      const daemon = await startSidecar(config, { stdout: io.stdout, version, reader, reading });
      return await daemon.finished;
    } catch (error) {
      io.stderr(`aliquot: ${error instanceof Error ? error.message : String(error)}\n`);
      return EXIT.failure;
    }
  },
};

/** Only a process with a channel to its parent can be one; others need not load what tells. */
async function isWorker(): Promise<boolean> {
  return process.send !== undefined && (await import("node:cluster")).default.isWorker;
}
