/**
 * Who the client is, as an address.
 *
 * `X-Forwarded-For` is believed only as far as proxies of our own have written it: of its entries,
 * counted from the end, the first `trustedHops`. Each proxy appends the address that connected to
 * it, so the entry of the outermost trusted proxy is the client; what stands before it was sent by
 * the client and may be anything. Without trusted hops the peer of the connection is the client.
 */
import { isIP } from "node:net";
import type { OriginalRequest } from "../ports/policy.ts";
import { ABSENT, type Part } from "./key.ts";

/** Longest spelling of an address that is looked at: IPv6 with a zone, in brackets, with a port. */
const SPELLING_MAX = 128;

export interface AddressTerms {
  readonly trustedHops: number;
  readonly ipv6Prefix: number;
}

/** Absent when there is none: a Unix socket without trusted hops, an entry that is no address. */
export function clientAddress(request: OriginalRequest, terms: AddressTerms): Part {
  const spelled = forwardedFor(request, terms.trustedHops) ?? request.peer;
  const text = spelled === undefined ? undefined : normalAddress(spelled, terms.ipv6Prefix);
  return text === undefined ? ABSENT : { kind: "address", text };
}

/** With fewer entries than hops the client reached an inner proxy, which wrote the first one. */
function forwardedFor(request: OriginalRequest, trustedHops: number): string | undefined {
  if (trustedHops === 0) return undefined;
  // Several lines are one list (RFC 9110, 5.3).
  const entries = request
    .header("x-forwarded-for")
    .flatMap((line) => line.split(","))
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
  return entries[Math.max(0, entries.length - trustedHops)];
}

/**
 * One spelling per client: without port, brackets and zone; IPv4 inside IPv6 as IPv4; IPv6 as the
 * network of `ipv6Prefix` bits, because a client has all the addresses of its network.
 *
 * @returns Undefined when it is no address.
 */
export function normalAddress(spelled: string, ipv6Prefix: number): string | undefined {
  if (spelled.length > SPELLING_MAX) return undefined;
  const bare = withoutPort(spelled).replace(/%.*$/, "");
  const version = isIP(bare);
  if (version === 0) return undefined;
  if (version === 4) return bare;
  const groups = groupsOf(bare);
  const [, , , , , mapped, high = 0, low = 0] = groups;
  if (groups.slice(0, 5).every((group) => group === 0) && mapped === 0xffff) {
    return [high >> 8, high & 255, low >> 8, low & 255].join(".");
  }
  return network(groups, ipv6Prefix);
}

function withoutPort(spelled: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(spelled);
  if (bracketed !== null) return bracketed[1] ?? "";
  return spelled.replace(/^([\d.]+):\d{1,5}$/, "$1");
}

/** The eight numbers of an IPv6 address that `isIP` has accepted. */
function groupsOf(address: string): number[] {
  const plain = address.replace(/([\d.]+\.)(\d+)\.(\d+)$/, (_, first: string, c, d) => {
    const [a = 0, b = 0] = first.split(".").map(Number);
    return `${(a * 256 + b).toString(16)}:${(Number(c) * 256 + Number(d)).toString(16)}`;
  });
  const [head = "", tail] = plain.split("::");
  const numbers = (text: string): number[] =>
    text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16));
  if (tail === undefined) return numbers(head);
  const [before, after] = [numbers(head), numbers(tail)];
  return [...before, ...new Array<number>(8 - before.length - after.length).fill(0), ...after];
}

/** `2001:db8:0:1::/64`: the first bits, then zeros left out. */
function network(groups: readonly number[], prefix: number): string {
  const kept = groups.map((group, index) => {
    const bits = Math.min(16, Math.max(0, prefix - 16 * index));
    return group & (0xffff << (16 - bits)) & 0xffff;
  });
  const used = kept.findLastIndex((group) => group !== 0) + 1;
  const text = kept
    .slice(0, used)
    .map((group) => group.toString(16))
    .join(":");
  const rest = used < 8 ? "::" : "";
  return `${text}${rest}/${prefix}`;
}
