/**
 * The effective configuration: resolved, in the units of the core, and impossible to be wrong. It
 * is made only by `loadConfig`; nothing behind it checks a value again.
 */
import type { Fallback, Limit, OnDeny } from "../core/limit.ts";
import type { DurationUs } from "../core/units.ts";
import type { DescriptorDomain } from "../ports/descriptors.ts";
import type { Policy } from "../ports/policy.ts";
import type { Address } from "./address.ts";

/** Which response headers tell callers about their limits. */
export type HeaderShape = "ietf" | "x-delta" | "x-epoch" | "draft-03";

export type LogLevel = "error" | "warn" | "info" | "debug" | "trace";

/** Where one decision API listens; undefined means not there. */
export interface DecisionListener {
  /** Absolute path of a Unix socket. */
  readonly socket: string | undefined;
  readonly tcp: Address | undefined;
}

export interface ListenConfig {
  /** At least one of socket and TCP is set. */
  readonly http: DecisionListener;
  readonly grpc: DecisionListener;
  readonly resp: DecisionListener;
  readonly ops: Address | undefined;
  /** Permission bits of the sockets. */
  readonly socketMode: number;
  /** Decision listeners may be reached from other machines. */
  readonly allowRemote: boolean;
}

export interface OpsConfig {
  /** Status pages show keys as callers gave them, and not their digests. */
  readonly showKeys: boolean;
}

export type RedisTopology =
  | { readonly kind: "single"; readonly server: Address }
  | { readonly kind: "cluster"; readonly servers: readonly Address[] }
  | { readonly kind: "sentinel"; readonly name: string; readonly sentinels: readonly Address[] };

/** Files are named, not read: they are read again at each connection, so that they may rotate. */
export interface RedisTls {
  readonly caFile: string | undefined;
  readonly certFile: string | undefined;
  readonly keyFile: string | undefined;
  readonly serverName: string | undefined;
}

export type RedisPassword =
  | { readonly kind: "value"; readonly value: string }
  | { readonly kind: "file"; readonly path: string };

export interface RedisConfig {
  readonly topology: RedisTopology;
  /** Number of the database; always 0 on a cluster. */
  readonly database: number;
  readonly username: string | undefined;
  readonly password: RedisPassword | undefined;
  /** Undefined for plain TCP. */
  readonly tls: RedisTls | undefined;
  readonly commandTimeoutUs: DurationUs;
}

export interface MembershipTerms {
  readonly heartbeatUs: DurationUs;
  /** A pod silent for this long is dropped. */
  readonly timeoutUs: DurationUs;
}

export type MembershipConfig = MembershipTerms & MembershipSource;

export type MembershipSource =
  | { readonly source: "redis" }
  | { readonly source: "static"; readonly pods: number }
  | KubernetesMembership
  | DnsMembership;

/** The pods behind a Service, by its EndpointSlices, beside the heartbeats. */
export interface KubernetesMembership {
  readonly source: "kubernetes";
  readonly service: string;
  /** Undefined: as the service account's file tells. */
  readonly namespace: string | undefined;
  /** Folder of `ca.crt`, `token` and `namespace`. */
  readonly serviceAccount: string;
  /** Undefined outside a cluster. */
  readonly server: Address | undefined;
}

/** The pods behind a headless Service, by its addresses in DNS, beside the heartbeats. */
export interface DnsMembership {
  readonly source: "dns";
  readonly service: string;
  /** Undefined: the servers of resolv.conf. */
  readonly resolver: Address | undefined;
}

export interface Config {
  /** The file that this configuration came from, as it was named. */
  readonly file: string;
  /** SHA-256 over everything that should be equal in all pods of the fleet, hex. */
  readonly hash: string;
  readonly fleet: string;
  readonly podId: string;
  readonly listen: ListenConfig;
  /** Undefined for the embedded store: this pod is the whole fleet. */
  readonly redis: RedisConfig | undefined;
  readonly reconcile: { readonly intervalUs: DurationUs };
  readonly decisionTimeoutUs: DurationUs;
  readonly drainTimeoutUs: DurationUs;
  readonly membership: MembershipConfig;
  /** Defaults for limits that name no fallback of their own; already applied to `limits`. */
  readonly fallback: Fallback;
  readonly headers: readonly HeaderShape[];
  /** Most keys tracked at once in this pod, by each of its workers. */
  readonly keysMax: number;
  /** Processes that decide, each a member of the fleet; the same number in all pods. */
  readonly workers: number;
  readonly logLevel: LogLevel;
  readonly ops: OpsConfig;
  /** In file order, with distinct names; at least one unless `envoy` has some. */
  readonly limits: readonly Limit[];
  /** For `/v1/forward`, in file order, with distinct names. */
  readonly policies: readonly Policy[];
  /** Undefined when there are no rules for Envoy. */
  readonly envoy: EnvoyConfig | undefined;
  readonly resp: RespConfig;
}

/** What holds for checks in the Redis protocol. */
export interface RespConfig {
  /**
   * Stands for every limit that callers bring; its overrides are `ShapedLimits`. Undefined: callers
   * may bring none.
   */
  readonly inlineLimit: Limit | undefined;
  /** Most limits that callers bring at one time. */
  readonly inlineLimitsMax: number;
}

/** Files of envoyproxy/ratelimit, translated. */
export interface EnvoyConfig {
  /** As they stand in the file; relative ones begin where the file is. */
  readonly patterns: readonly string[];
  readonly onDeny: OnDeny;
  readonly domains: readonly DescriptorDomain[];
  /** Every limit of the domains, in the order of files and rules; names begin with `envoy/`. */
  readonly limits: readonly Limit[];
  /** SHA-256 over the texts of the files, hex. */
  readonly textHash: string;
}

/** Everything that the engine keeps: the limits of the file, those for Envoy, and inline ones. */
export function allLimits({
  limits,
  envoy,
  resp,
}: Pick<Config, "limits" | "envoy" | "resp">): readonly Limit[] {
  const { inlineLimit } = resp;
  return [...limits, ...(envoy?.limits ?? []), ...(inlineLimit === undefined ? [] : [inlineLimit])];
}
