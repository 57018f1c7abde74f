/** Turns URLs, password and TLS files into one way to reach the store. */
import { dirname, isAbsolute, join } from "node:path";
import type { Address } from "./address.ts";
import type { RedisConfig, RedisPassword, RedisTls, RedisTopology } from "./config.ts";
import type { FileRedis } from "./file-shape.ts";
import type { Findings } from "./findings.ts";
import type { Environment } from "./settings.ts";
import type { Path } from "./tree.ts";

const REDIS_PORT = 6_379;
const SENTINEL_PORT = 26_379;

const PASSWORD_VARIABLE = "ALIQUOT_REDIS_PASSWORD";

interface RedisUrl {
  readonly address: Address;
  readonly database: number;
  readonly tls: boolean;
  readonly username: string | undefined;
  readonly password: string | undefined;
}

/** @returns Undefined after problems that leave nothing to connect to. */
export function resolveRedis(
  redis: FileRedis,
  sources: { readonly file: string; readonly env: Environment },
  findings: Findings,
): RedisConfig | undefined {
  const ways = ["url", "cluster", "sentinel"].filter(
    (name) => findings.valueAt(["redis", name]) !== undefined,
  );
  if (ways.length !== 1) {
    const found = ways.length === 0 ? "none is there" : `there are ${ways.join(" and ")}`;
    findings.add(["redis"], `needs exactly one of url, cluster and sentinel; ${found}`);
    return undefined;
  }
  const urls = listUrls(redis).map(([path, text]) => readUrl(path, text, redis, findings));
  const usable = urls.filter((url) => url !== undefined);
  const first = usable[0];
  if (first === undefined || usable.length < urls.length) return undefined;
  if (usable.some((url) => url.tls !== first.tls || url.database !== first.database)) {
    findings.add(["redis", ...ways], "mixes redis:// with rediss://, or several databases");
  }
  if (redis.cluster !== undefined && first.database !== 0) {
    findings.add(["redis", "cluster"], "has a database number, and a cluster has only database 0");
  }
  if (redis.username !== undefined && first.username !== undefined) {
    findings.add(["redis", "username"], "is also given in the URL; keep one of them");
  }
  return {
    topology: topologyOf(
      redis,
      usable.map((url) => url.address),
      first.address,
    ),
    database: first.database,
    username: redis.username ?? first.username,
    password: passwordOf(redis, first.password, sources, findings),
    tls: resolveTls(redis, first.tls, sources.file, findings),
    commandTimeoutUs: redis.command_timeout,
  };
}

function listUrls(redis: FileRedis): readonly (readonly [Path, string])[] {
  if (redis.url !== undefined) return [[["redis", "url"], redis.url]];
  const base: Path =
    redis.cluster === undefined ? ["redis", "sentinel", "urls"] : ["redis", "cluster"];
  return (redis.cluster ?? redis.sentinel?.urls ?? []).map((url, i) => [[...base, i], url]);
}

function readUrl(
  path: Path,
  text: string,
  redis: FileRedis,
  findings: Findings,
): RedisUrl | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const database = /^\/?([0-9]{0,5})$/.exec(url?.pathname ?? "-")?.[1];
  if (url === undefined || url.hostname === "" || database === undefined) {
    findings.add(path, "must be a URL such as redis://redis:6379/0");
    return undefined;
  }
  if (url.search !== "" || url.hash !== "") {
    findings.add(path, "must end after the database number; options are fields of redis");
  }
  // The environment may hold secrets; a file gets into version control and a flag into `ps`.
  if (url.password !== "" && findings.setter(path)?.startsWith("environment") !== true) {
    findings.add(
      path,
      "holds a password; use redis.password_file or the variable ALIQUOT_REDIS_PASSWORD",
    );
  }
  const port = redis.sentinel === undefined ? REDIS_PORT : SENTINEL_PORT;
  return {
    address: {
      host: url.hostname.replace(/^\[|\]$/g, ""),
      port: url.port === "" ? port : Number(url.port),
    },
    database: Number(database),
    tls: url.protocol === "rediss:",
    username: decode(url.username),
    password: decode(url.password),
  };
}

/** Percent-decoded; as it stands when it is no valid percent-encoding; undefined when empty. */
function decode(text: string): string | undefined {
  if (text === "") return undefined;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function topologyOf(
  redis: FileRedis,
  addresses: readonly Address[],
  first: Address,
): RedisTopology {
  if (redis.cluster !== undefined) return { kind: "cluster", servers: addresses };
  if (redis.sentinel === undefined) return { kind: "single", server: first };
  return { kind: "sentinel", name: redis.sentinel.name, sentinels: addresses };
}

function passwordOf(
  redis: FileRedis,
  inUrl: string | undefined,
  sources: { readonly file: string; readonly env: Environment },
  findings: Findings,
): RedisPassword | undefined {
  const variable = sources.env[PASSWORD_VARIABLE] || undefined;
  const value = variable ?? inUrl;
  if (value !== undefined) return { kind: "value", value };
  const path = resolveFile(redis.password_file, ["redis", "password_file"], sources.file, findings);
  return path === undefined ? undefined : { kind: "file", path };
}

function resolveTls(
  redis: FileRedis,
  wanted: boolean,
  file: string,
  findings: Findings,
): RedisTls | undefined {
  if (!wanted) {
    if (redis.tls !== undefined) {
      findings.add(["redis", "tls"], "has no effect on redis:// URLs; use rediss://");
    }
    return undefined;
  }
  if ((redis.tls?.cert_file === undefined) !== (redis.tls?.key_file === undefined)) {
    findings.add(["redis", "tls"], "needs both cert_file and key_file, or neither");
  }
  const path = (name: "ca_file" | "cert_file" | "key_file"): string | undefined =>
    resolveFile(redis.tls?.[name], ["redis", "tls", name], file, findings);
  return {
    caFile: path("ca_file"),
    certFile: path("cert_file"),
    keyFile: path("key_file"),
    serverName: redis.tls?.server_name,
  };
}

/** Paths in the file are relative to the file; paths from flags and environment to where we run. */
function resolveFile(
  path: string | undefined,
  field: Path,
  file: string,
  findings: Findings,
): string | undefined {
  if (path === undefined || isAbsolute(path) || findings.setter(field) !== undefined) return path;
  return join(dirname(file), path);
}
