/** The flags that stand for settings, and loading a configuration the way `serve` does. */
import type { Config } from "../config/config.ts";
import type { Loaded } from "../config/load.ts";
import { formatProblem, type Problem } from "../config/problem.ts";
import { ConfigReader } from "../config/reading.ts";
import { environmentName, SETTINGS } from "../config/settings.ts";
import type { GivenFlags, Io, Option } from "./verb.ts";

/** Where the image keeps the file, unless told otherwise. */
export const DEFAULT_CONFIG_PATH = "/etc/aliquot/aliquot.yaml";

export const CONFIG_OPTION: Option = {
  name: "config",
  value: "FILE",
  help: `configuration; ALIQUOT_CONFIG or ${DEFAULT_CONFIG_PATH} when left out`,
};

/** One flag per setting; each has an environment variable, `--redis-url` is `ALIQUOT_REDIS_URL`. */
export const SETTING_OPTIONS: readonly Option[] = [
  {
    name: "pod-id",
    value: "ID",
    help: "this pod; ALIQUOT_POD_ID, POD_UID or the host name when left out",
  },
  ...SETTINGS.map(({ flag, kind, help }): Option => {
    return { name: flag, value: kind === "switch" ? undefined : "VALUE", help };
  }),
];

/** The options of the settings with these names. */
export function settingOptions(...names: readonly string[]): readonly Option[] {
  return SETTING_OPTIONS.filter(({ name }) => names.includes(name));
}

/** The file that flag or environment name; undefined when neither does. */
export function namedConfigPath(flags: GivenFlags, io: Io): string | undefined {
  return (
    flags.get(CONFIG_OPTION.name) ?? (io.env[environmentName(CONFIG_OPTION.name)] || undefined)
  );
}

/** Reads one file, and what it names, with environment and flags laid over it. */
export function readerOf(path: string, flags: GivenFlags, io: Io): ConfigReader {
  const { env, hostname } = io;
  return new ConfigReader({ path, env, flags: Object.fromEntries(flags), hostname });
}

export async function loadFile(path: string, flags: GivenFlags, io: Io): Promise<Loaded> {
  return (await readerOf(path, flags, io).read()).load();
}

/** Loads one file; problems go to stderr, one line each, and undefined is returned. */
export async function loadOrReport(
  path: string,
  flags: GivenFlags,
  io: Io,
): Promise<Config | undefined> {
  const { config, problems } = await loadFile(path, flags, io);
  if (config === undefined) io.stderr(problemLines(problems));
  return config;
}

export function problemLines(problems: readonly Problem[]): string {
  return problems.map((problem) => `${formatProblem(problem)}\n`).join("");
}
