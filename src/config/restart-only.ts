/**
 * What a running sidecar cannot change: where it listens, where its store is, who it is, and the
 * sizes of what was made at its start. A new file may say otherwise; that waits for a restart.
 */
import { isDeepStrictEqual } from "node:util";
import type { Config } from "./config.ts";
import { hashConfig } from "./load.ts";

/** Fields in the words of the file, with the part of the configuration that each stands for. */
const RESTART_ONLY: readonly (readonly [string, (config: Config) => unknown])[] = [
  ["fleet", ({ fleet }) => fleet],
  ["listen.http", ({ listen }) => listen.http],
  ["listen.grpc", ({ listen }) => listen.grpc],
  ["listen.resp", ({ listen }) => listen.resp],
  ["listen.ops", ({ listen }) => listen.ops],
  ["listen.socket_mode", ({ listen }) => listen.socketMode],
  ["listen.allow_remote", ({ listen }) => listen.allowRemote],
  ["redis", ({ redis }) => redis],
  ["membership", ({ membership }) => membership],
  ["decision_timeout", ({ decisionTimeoutUs }) => decisionTimeoutUs],
  ["keys_max", ({ keysMax }) => keysMax],
  ["workers", ({ workers }) => workers],
];

export interface Applicable {
  /** The new configuration with the fields of the running one that cannot change. */
  readonly config: Config;
  /** Fields that the new file changes and that wait for a restart. */
  readonly needsRestart: readonly string[];
}

/** As much of `next` as a sidecar that runs with `running` can follow. */
export function applicable(running: Config, next: Config): Applicable {
  const needsRestart = RESTART_ONLY.flatMap(([field, part]) =>
    isDeepStrictEqual(part(running), part(next)) ? [] : [field],
  );
  const { fleet, podId, listen, redis, membership, decisionTimeoutUs, keysMax, workers } = running;
  const kept = { fleet, podId, listen, redis, membership, decisionTimeoutUs, keysMax, workers };
  const config = { ...next, ...kept };
  return { config: { ...config, hash: hashConfig(config) }, needsRestart };
}
