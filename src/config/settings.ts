/**
 * What can be set outside the file: one flag and one environment variable per setting, laid over
 * the file's values before they are validated, flags last. A problem with such a value names the
 * flag or the variable in place of a line.
 */
import { type Path, valueAt, withValue } from "./tree.ts";

export type Environment = Readonly<Record<string, string | undefined>>;
/** Flags as given, by name without dashes. */
export type Flags = Readonly<Record<string, string | boolean | undefined>>;

export interface Setting {
  /** Name of the flag without dashes. */
  readonly flag: string;
  /** The field that it stands for. */
  readonly path: Path;
  readonly kind: "text" | "number" | "switch";
  readonly help: string;
  /** Fields that the setting displaces. */
  readonly displaces?: readonly Path[];
}

export const SETTINGS: readonly Setting[] = [
  { flag: "fleet", path: ["fleet"], kind: "text", help: "fleet that shares the limits" },
  {
    flag: "listen-http-socket",
    path: ["listen", "http", "socket"],
    kind: "text",
    help: "Unix socket of the decision API, or off",
  },
  {
    flag: "listen-http-tcp",
    path: ["listen", "http", "tcp"],
    kind: "text",
    help: "host:port of the decision API, or off",
  },
  {
    flag: "listen-grpc-socket",
    path: ["listen", "grpc", "socket"],
    kind: "text",
    help: "Unix socket of the gRPC service, or off",
  },
  {
    flag: "listen-grpc-tcp",
    path: ["listen", "grpc", "tcp"],
    kind: "text",
    help: "host:port of the gRPC service, or off",
  },
  {
    flag: "listen-resp-socket",
    path: ["listen", "resp", "socket"],
    kind: "text",
    help: "Unix socket of the Redis protocol, or off",
  },
  {
    flag: "listen-resp-tcp",
    path: ["listen", "resp", "tcp"],
    kind: "text",
    help: "host:port of the Redis protocol, or off",
  },
  { flag: "ops", path: ["listen", "ops"], kind: "text", help: "host:port of probes and metrics" },
  {
    flag: "listen-socket-mode",
    path: ["listen", "socket_mode"],
    kind: "text",
    help: "permissions of the Unix sockets, such as 0660",
  },
  {
    flag: "listen-allow-remote",
    path: ["listen", "allow_remote"],
    kind: "switch",
    help: "allow decision listeners that other machines can reach",
  },
  {
    flag: "redis-url",
    path: ["redis", "url"],
    kind: "text",
    help: "shared store, redis:// or rediss://",
    displaces: [
      ["redis", "cluster"],
      ["redis", "sentinel"],
    ],
  },
  { flag: "redis-username", path: ["redis", "username"], kind: "text", help: "ACL user" },
  {
    flag: "redis-password-file",
    path: ["redis", "password_file"],
    kind: "text",
    help: "file that holds the password",
  },
  {
    flag: "redis-command-timeout",
    path: ["redis", "command_timeout"],
    kind: "text",
    help: "a reply that takes longer counts as lost",
  },
  {
    flag: "reconcile-interval",
    path: ["reconcile", "interval"],
    kind: "text",
    help: "time between two exchanges with the store",
  },
  {
    flag: "decision-timeout",
    path: ["decision_timeout"],
    kind: "text",
    help: "no check is held for longer",
  },
  { flag: "drain-timeout", path: ["drain_timeout"], kind: "text", help: "longest stop" },
  {
    flag: "membership-source",
    path: ["membership", "source"],
    kind: "text",
    help: "how live pods are counted: redis, kubernetes, dns or static",
  },
  {
    flag: "membership-pods",
    path: ["membership", "pods"],
    kind: "number",
    help: "number of pods, for the static source",
  },
  {
    flag: "membership-service",
    path: ["membership", "service"],
    kind: "text",
    help: "Service whose pods are counted, for kubernetes and dns",
  },
  {
    flag: "membership-namespace",
    path: ["membership", "namespace"],
    kind: "text",
    help: "namespace of that Service",
  },
  { flag: "keys-max", path: ["keys_max"], kind: "number", help: "most keys tracked at once" },
  {
    flag: "workers",
    path: ["workers"],
    kind: "number",
    help: "processes that share the listeners, each a member of the fleet",
  },
  {
    flag: "log-level",
    path: ["log_level"],
    kind: "text",
    help: "error, warn, info, debug or trace",
  },
];

/** `--redis-url` has the twin `ALIQUOT_REDIS_URL`. */
export function environmentName(flag: string): string {
  return `ALIQUOT_${flag.toUpperCase().replaceAll("-", "_")}`;
}

export interface Overlaid {
  readonly value: unknown;
  /** Who set the value at a path, when it was not the file. */
  setter(path: Path): string | undefined;
}

/** Lays environment and flags over the file's values. Empty variables count as unset. */
export function overlay(fileValue: unknown, env: Environment, flags: Flags): Overlaid {
  const setters: { readonly path: Path; readonly by: string }[] = [];
  let value = fileValue;
  const set = (setting: Setting, given: string | boolean, by: string): void => {
    for (const path of setting.displaces ?? []) value = withValue(value, path, undefined);
    value = withValue(value, setting.path, asFileValue(setting, given));
    setters.unshift({ path: setting.path, by });
  };
  for (const setting of SETTINGS) {
    const name = environmentName(setting.flag);
    const variable = env[name];
    if (variable !== undefined && variable !== "") {
      set(setting, variable, `environment variable ${name}`);
    }
    const flag = flags[setting.flag];
    if (flag !== undefined) set(setting, flag, `flag --${setting.flag}`);
  }
  const setter = (path: Path): string | undefined => {
    const inside = setters.find((entry) => startsWith(path, entry.path));
    if (inside !== undefined) return inside.by;
    // A section that the file lacks is there because a setting inside it was given.
    if (valueAt(fileValue, path) !== undefined) return undefined;
    return setters.find((entry) => startsWith(entry.path, path))?.by;
  };
  return { value, setter };
}

function startsWith(path: Path, start: Path): boolean {
  return start.every((step, i) => step === path[i]);
}

/** Texts become what the file would hold; a text that is no number or switch is refused later. */
function asFileValue(setting: Setting, given: string | boolean): unknown {
  if (setting.kind === "number" && /^[0-9]{1,15}$/.test(String(given))) return Number(given);
  if (setting.kind === "switch" && given === "true") return true;
  if (setting.kind === "switch" && given === "false") return false;
  return given;
}
