/** `aliquot validate`: every problem of some files, or the limits that they would put in force. */
import { stringify } from "yaml";
import { allLimits, type Config } from "../config/config.ts";
import { formatDuration } from "../config/duration.ts";
import { describeConfig } from "../config/effective.ts";
import { formatRate } from "../config/rate.ts";
import type { Limit } from "../core/limit.ts";
import { ShapedLimits } from "../core/shaped-limits.ts";
import { alignColumns } from "./columns.ts";
import { loadFile, problemLines, SETTING_OPTIONS } from "./configuration.ts";
import { EXIT, type Verb } from "./verb.ts";

/** More files in one call are a mistake, such as a wildcard in the wrong folder. */
const FILES_MAX = 100;

/** Overrides shown per limit; the rest is counted. */
const OVERRIDES_SHOWN_MAX = 10;

export const validate: Verb = {
  name: "validate",
  summary: "Check configuration files and print the limits they put in force.",
  operands: "FILE...",
  operandCount: [1, FILES_MAX],
  options: [
    {
      name: "effective",
      value: undefined,
      help: "print the whole configuration with defaults filled in and secrets left out",
    },
    ...SETTING_OPTIONS,
  ],
  examples: [
    ["aliquot validate examples/redis.yaml", "the limits, or every problem with its line"],
    ["aliquot validate --effective a.yaml > full.yaml", "what the defaults are"],
  ],
  async run({ operands, flags }, io) {
    let problems = 0;
    for (const path of operands) {
      const loaded = await loadFile(path, flags, io);
      if (loaded.config === undefined) {
        problems += loaded.problems.length;
        io.stderr(problemLines(loaded.problems));
      } else if (flags.get("effective") === "true") {
        io.stdout(stringify(describeConfig(loaded.config)));
      } else {
        io.stdout(`${limitsTable(loaded.config).join("\n")}\n`);
      }
    }
    if (problems === 0) return EXIT.ok;
    io.stderr(`${problems} ${problems === 1 ? "problem" : "problems"}\n`);
    return EXIT.usage;
  },
};

/** The limits of a configuration as a table for people. */
export function limitsTable(config: Config): readonly string[] {
  const limits = allLimits(config);
  const count = limits.length;
  const store = config.redis === undefined ? "embedded store" : "redis";
  const rows = limits.flatMap((limit) => [limitRow(limit), ...overrideRows(limit)]);
  return [
    `${config.file}: valid; fleet ${config.fleet}, ${store}, ` +
      `${count} ${count === 1 ? "limit" : "limits"}`,
    ...alignColumns(
      [["LIMIT", "RATE", "BURST", "MODE", "INTERVAL", "FALLBACK", ""], ...rows],
      "  ",
    ),
  ];
}

function limitRow(limit: Limit): string[] {
  const { policy, margin, maxPods } = limit.fallback;
  const isBrought = limit.overrides instanceof ShapedLimits;
  return [
    limit.name,
    isBrought ? "caller's" : formatRate(limit),
    isBrought ? "caller's" : String(limit.burst),
    limit.mode,
    formatDuration(limit.intervalUs),
    policy === "local" ? `local, ${margin} for up to ${maxPods} pods` : policy,
    limit.shadow ? "shadow" : "",
  ];
}

function overrideRows(limit: Limit): string[][] {
  const rows = [...limit.overrides]
    .slice(0, OVERRIDES_SHOWN_MAX)
    .map(([key, override]) => [
      `  key ${JSON.stringify(key)}`,
      formatRate(override),
      String(override.burst),
      override.mode,
      formatDuration(override.intervalUs),
    ]);
  const hidden = limit.overrides.size - rows.length;
  return hidden > 0 ? [...rows, [`  and ${hidden} more keys`]] : rows;
}
