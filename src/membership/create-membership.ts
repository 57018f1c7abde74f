/** The membership that a configuration asks for. */
import type { Clock } from "../ports/clock.ts";
import { DnsSource } from "./dns-source.ts";
import { KubernetesSource } from "./kubernetes-source.ts";
import { ListedMembership } from "./listed-membership.ts";
import type { Membership, MembershipListener } from "./membership.ts";
import { PodListing, type SourceLog } from "./pod-listing.ts";
import type { PodSource } from "./pod-source.ts";
import { RedisMembership, type RedisMembershipOptions } from "./redis-membership.ts";
import { StaticMembership } from "./static-membership.ts";

interface Server {
  readonly host: string;
  readonly port: number;
}

interface KubernetesTerms {
  readonly source: "kubernetes";
  readonly service: string;
  readonly namespace: string | undefined;
  readonly serviceAccount: string;
  readonly server: Server | undefined;
}

interface DnsTerms {
  readonly source: "dns";
  readonly service: string;
  readonly resolver: Server | undefined;
}

export type SourceTerms =
  | { readonly source: "redis" }
  | { readonly source: "static"; readonly pods: number }
  | KubernetesTerms
  | DnsTerms;

export interface MembershipParts extends Omit<RedisMembershipOptions, "listener"> {
  readonly clock: Clock;
  readonly listener: MembershipListener & {
    membershipListed(pods: number | undefined): void;
  };
  readonly log: SourceLog;
}

/** Nothing begins before it is started. */
export function createMembership(terms: SourceTerms, parts: MembershipParts): Membership {
  if (terms.source === "static") return new StaticMembership(terms.pods, parts.listener);
  const heartbeats = new RedisMembership(parts);
  if (terms.source === "redis") return heartbeats;
  return new ListedMembership(heartbeats, sourceOf(terms, parts));
}

function sourceOf(terms: KubernetesTerms | DnsTerms, parts: MembershipParts): PodSource {
  const { clock, random, log, listener } = parts;
  const tell = (pods: number | undefined): void => listener.membershipListed(pods);
  const listing = new PodListing({ clock, tell, log });
  if (terms.source === "dns") return new DnsSource({ ...terms, listing, random });
  return new KubernetesSource({ ...terms, listing, clock, random });
}
