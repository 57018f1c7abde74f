/**
 * What a proxy's sub-request is checked for: the policies of the configuration, and the shape in
 * which a front door asks them.
 *
 * Texts that come from a request are *byte strings*: one character per byte, as Node hands over
 * headers. So nothing is lost or merged before it is decided what the bytes mean.
 */
import type { Tokens } from "../core/units.ts";

/** One segment of a path pattern: a text, `*`, `**` or `:name`. */
export type PatternSegment =
  | { readonly kind: "text"; readonly bytes: string }
  | { readonly kind: "one" }
  | { readonly kind: "rest" }
  | { readonly kind: "param"; readonly name: string };

/** At most one segment is `**`. */
export type PathPattern = readonly PatternSegment[];

/** Where a part of a key comes from. Names of headers are in lower case. */
export type KeySource =
  | { readonly kind: "header" | "path" | "query" | "cookie"; readonly name: string }
  | { readonly kind: "client-address" }
  | { readonly kind: "const"; readonly value: string };

export interface PolicyCheck {
  /** Name of a configured limit. */
  readonly limit: string;
  /** One source, or several whose parts are joined to one key. */
  readonly key: readonly KeySource[];
  readonly cost: Tokens;
}

export interface Policy {
  readonly name: string;
  /** Undefined: any method. */
  readonly methods: ReadonlySet<string> | undefined;
  /** Undefined: any path. */
  readonly paths: readonly PathPattern[] | undefined;
  readonly checks: readonly PolicyCheck[];
  /** How many entries at the end of `X-Forwarded-For` were written by proxies to be believed. */
  readonly trustedHops: number;
  /** Leading bits of an IPv6 address that tell clients apart. */
  readonly ipv6Prefix: number;
}

/** A request as the client sent it to the proxy, as far as the proxy tells. */
export interface OriginalRequest {
  readonly method: string;
  /** Path and query, a byte string. */
  readonly target: string;
  /** The values of a header, one per line of it; the name in lower case. */
  header(name: string): readonly string[];
  /** Address of whoever opened the connection; undefined on a Unix socket. */
  readonly peer: string | undefined;
}

/** A check by the name of its limit, so that a front door resolves it against what is in force. */
export interface NamedCheck {
  readonly limit: string;
  readonly key: string;
  readonly cost: Tokens;
}

/** The policies in force. */
export interface Policies {
  /** In configuration order. */
  readonly names: readonly string[];
  /** Checks of the policy of that name, whatever it matches; undefined when there is none. */
  named(name: string, request: OriginalRequest): readonly NamedCheck[] | undefined;
  /** Checks of the first policy that matches; none, and that is counted, when no policy does. */
  matching(request: OriginalRequest): readonly NamedCheck[];
}
