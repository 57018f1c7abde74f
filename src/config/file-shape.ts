/**
 * The file after the schema has read it: names as in the file, values in the core's units, defaults
 * filled in, sections not yet put together.
 */
import type { Fallback, OnDeny } from "../core/limit.ts";
import type { DurationUs, Tokens } from "../core/units.ts";
import type { Address } from "./address.ts";
import type { HeaderShape, LogLevel } from "./config.ts";
import type { Rate } from "./rate.ts";

export interface FileListen {
  readonly http: { readonly socket: string | undefined; readonly tcp: Address | undefined };
  readonly grpc: { readonly socket: string | undefined; readonly tcp: Address | undefined };
  readonly resp: { readonly socket: string | undefined; readonly tcp: Address | undefined };
  readonly ops: Address | undefined;
  readonly socket_mode: number;
  readonly allow_remote: boolean;
}

export interface FileRedis {
  readonly url?: string | undefined;
  readonly cluster?: readonly string[] | undefined;
  readonly sentinel?: { readonly name: string; readonly urls: readonly string[] } | undefined;
  readonly username?: string | undefined;
  readonly password_file?: string | undefined;
  readonly tls?: FileTls | undefined;
  readonly command_timeout: DurationUs;
}

export interface FileTls {
  readonly ca_file?: string | undefined;
  readonly cert_file?: string | undefined;
  readonly key_file?: string | undefined;
  readonly server_name?: string | undefined;
}

export interface FileMembership {
  readonly source: "redis" | "kubernetes" | "dns" | "static";
  readonly pods?: number | undefined;
  readonly service?: string | undefined;
  readonly namespace?: string | undefined;
  readonly service_account?: string | undefined;
  readonly resolver?: string | undefined;
  readonly heartbeat: DurationUs;
  readonly timeout: DurationUs;
}

export interface FileFallback {
  readonly policy: Fallback["policy"];
  readonly margin: number;
  readonly max_pods: number;
}

export interface FileOverride {
  readonly key: string;
  readonly rate: Rate;
  readonly burst?: Tokens | undefined;
}

export type FileLimitFallback =
  | Fallback["policy"]
  | { readonly [K in keyof FileFallback]?: FileFallback[K] | undefined };

export interface FileLimit {
  readonly name: string;
  readonly rate: Rate;
  readonly burst?: Tokens | undefined;
  readonly mode: "auto" | "hybrid" | "leased" | "exact";
  readonly tolerance?: number | undefined;
  readonly fallback?: FileLimitFallback | undefined;
  readonly shadow: boolean;
  readonly on_deny: OnDeny;
  readonly overrides?: readonly FileOverride[] | undefined;
}

/** The block `aliquot:` beside a `rate_limit` of envoyproxy/ratelimit. */
export interface FileDescriptorTerms {
  readonly burst?: Tokens | undefined;
  readonly mode?: FileLimit["mode"] | undefined;
  readonly fallback?: FileLimitFallback | undefined;
  readonly on_deny?: OnDeny | undefined;
}

export interface FileEnvoy {
  readonly domains: readonly string[];
  readonly on_deny: OnDeny;
}

export interface FileResp {
  readonly inline_limits: boolean;
  readonly max_inline_limits: number;
}

/** One text or a list of them. */
export type FileTexts = string | readonly string[];

export interface FileForward {
  readonly trusted_hops?: number | undefined;
  readonly ipv6_prefix: number;
}

export interface FilePolicyCheck {
  readonly limit: string;
  readonly key: FileTexts;
  readonly cost: Tokens;
}

export interface FilePolicy {
  readonly name: string;
  readonly match: {
    readonly methods?: readonly string[] | undefined;
    readonly path?: FileTexts | undefined;
  };
  readonly trusted_hops?: number | undefined;
  readonly ipv6_prefix?: number | undefined;
  readonly checks: readonly FilePolicyCheck[];
}

export interface FileShape {
  readonly version: 1;
  readonly fleet?: string | undefined;
  readonly listen: FileListen;
  readonly redis?: FileRedis | undefined;
  readonly reconcile: { readonly interval: DurationUs };
  readonly decision_timeout: DurationUs;
  readonly drain_timeout: DurationUs;
  readonly membership: FileMembership;
  readonly fallback: FileFallback;
  readonly headers: readonly HeaderShape[];
  readonly keys_max: number;
  readonly workers: number;
  readonly log_level: LogLevel;
  readonly ops: { readonly show_keys: boolean };
  readonly limits?: readonly FileLimit[] | undefined;
  readonly forward: FileForward;
  readonly policies: readonly FilePolicy[];
  readonly envoy?: FileEnvoy | undefined;
  readonly resp: FileResp;
}
