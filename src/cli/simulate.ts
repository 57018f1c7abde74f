/**
 * `aliquot simulate`: what the limits of a configuration will do with many pods, skewed load and
 * Redis away, before any of it is deployed.
 *
 * The simulator is loaded when it is asked for and not before: a sidecar never needs it, and an
 * image may leave it out.
 */
import { readConfigFile } from "../config/read-file.ts";
import { CONFIG_OPTION, loadOrReport, namedConfigPath, problemLines } from "./configuration.ts";
import { EXIT, type GivenFlags, UsageError, type Verb } from "./verb.ts";

export const simulate: Verb = {
  name: "simulate",
  summary: "Run a scenario against the limits of a configuration, without any network.",
  operands: "SCENARIO",
  operandCount: [1, 1],
  options: [
    { ...CONFIG_OPTION, help: "configuration whose limits are simulated" },
    {
      name: "seed",
      value: "N",
      help: "in place of the scenario's own; the same seed, the same run",
    },
    { name: "out", value: "DIR", help: "also write results.json, results.csv and report.html" },
  ],
  examples: [
    [
      "aliquot simulate examples/simulate-outage.yaml --config examples/redis.yaml",
      "Redis away for 20 s",
    ],
  ],
  async run({ operands, flags }, io) {
    const [path = ""] = operands;
    const seed = seedOf(flags);
    const configPath = namedConfigPath(flags, io);
    if (configPath === undefined) throw new UsageError("needs a configuration: --config FILE");
    const config = await loadOrReport(configPath, new Map(), io);
    if (config === undefined) return EXIT.usage;
    const scenario = await readConfigFile(path);
    if (scenario.text === undefined) {
      io.stderr(
        problemLines([{ ...scenario.problem, message: notRead(scenario.problem.message) }]),
      );
      return EXIT.usage;
    }
    const simulator = await import("../../sim/simulate/simulate.ts");
    const { text } = scenario;
    const request = { config, path, text, seed, out: flags.get("out") };
    const simulated = await simulator.simulate(request, (line) => io.stdout(`${line}\n`));
    if (simulated.problems !== undefined) {
      io.stderr(problemLines(simulated.problems));
      return EXIT.usage;
    }
    return simulated.holds ? EXIT.ok : EXIT.failure;
  },
};

/** The reader of configurations advises a flag that does not name a scenario. */
function notRead(message: string): string {
  return message.replace("; name a file with --config FILE", "");
}

function seedOf(flags: GivenFlags): number | undefined {
  const text = flags.get("seed");
  if (text === undefined) return undefined;
  if (!/^\d{1,10}$/.test(text)) throw new UsageError(`--seed must be a whole number; got ${text}`);
  return Number(text);
}
