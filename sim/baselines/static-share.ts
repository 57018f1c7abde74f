/**
 * Static r/N: every pod has an equal part of the limit, whatever its load.
 *
 * Rule: a bucket of rate r/N and burst b/N, where N is noticed with a delay; `burst: "whole"`
 * leaves the burst undivided. Source: Envoy's `local_cluster_rate_limit` (local_ratelimit_impl.cc
 * at 016c0c8; refill divided, `max_tokens` not), Mimir and Loki (limit by ring members), NGINX
 * Ingress (limit by pods).
 *
 * All pods see the same count, as informers of one cluster do. A bucket is first filled by the true
 * count, which is the kinder reading: a new pod brings b/N and not b/(what N was).
 */
import {
  type FleetLag,
  NO_STORE,
  type NodeContext,
  type Scheme,
  type SchemeNode,
} from "../scheme.ts";
import { LocalBucket } from "./local-bucket.ts";
import { PodBuckets } from "./pod-buckets.ts";

interface StaticShare {
  readonly name: string;
  readonly rule: string;
  readonly lag: FleetLag;
  readonly burst: "divided" | "whole";
}

/** The count that all pods of a run believe in, and who wants to know of changes. */
class SharedCount {
  readonly #factor: number;
  readonly #changed: (() => void)[] = [];
  #pods = 0;

  /** @param factor - What is believed, as a part of the truth. */
  constructor(factor: number) {
    this.#factor = factor;
  }

  /** Pods to divide by; before anything was noticed, the pods there are. */
  get pods(): number {
    return this.believed(this.#pods);
  }

  believed(pods: number): number {
    return Math.max(1, Math.round(pods * this.#factor));
  }

  /** Before the first request the fleet is put up pod by pod, and nobody has missed anything. */
  begin(pods: number): void {
    if (this.#pods === 0) this.#pods = pods;
  }

  notice(pods: number): void {
    if (pods === this.#pods) return;
    this.#pods = pods;
    for (const changed of this.#changed) changed();
  }

  onChange(changed: () => void): void {
    this.#changed.push(changed);
  }
}

function staticShare({ name, rule, lag, burst }: StaticShare): Scheme {
  return {
    name,
    rule,
    source: "Envoy local_cluster_rate_limit, Mimir, NGINX Ingress",
    start({ podsFactor }) {
      const count = new SharedCount(podsFactor);
      return { store: NO_STORE, node: (context) => shareNode(context, count, lag, burst) };
    },
  };
}

function shareNode(
  context: NodeContext<unknown>,
  count: SharedCount,
  lag: FleetLag,
  burst: StaticShare["burst"],
): SchemeNode {
  const burstPart = (pods: number): number => (burst === "whole" ? 1 : 1 / pods);
  const buckets = new PodBuckets(context.limits, (limit, nowUs) => {
    count.begin(context.livePods());
    const bornAmong = count.believed(context.livePods());
    return new LocalBucket(limit, nowUs, 1 / count.pods, burstPart(bornAmong));
  });
  count.onChange(() => buckets.divide(context.nowUs(), 1 / count.pods, burstPart(count.pods)));
  // A new pod's own first sight is passed over: it takes on what the others believe.
  let isBorn = false;
  context.watchFleet(lag, (pods) => {
    if (isBorn) count.notice(pods);
  });
  isBorn = true;
  return {
    request: (checks, answer) => answer(buckets.decide(context.nowUs(), checks)),
    inspect: () => ({ pods: count.pods, share: 1 / count.pods }),
  };
}

const INSTANT: FleetLag = { upUs: 0, downUs: 0 };

export const STATIC_SHARES: readonly Scheme[] = [
  staticShare({
    name: "static-share",
    rule: "every pod has r/N and b/N, N known at once",
    lag: INSTANT,
    burst: "divided",
  }),
  staticShare({
    name: "static-share-0.5s",
    rule: "every pod has r/N and b/N, N known after 0.5 s",
    lag: { upUs: 500_000, downUs: 500_000 },
    burst: "divided",
  }),
  staticShare({
    name: "static-share-2s",
    rule: "every pod has r/N and b/N, N known after 2 s",
    lag: { upUs: 2_000_000, downUs: 2_000_000 },
    burst: "divided",
  }),
  staticShare({
    name: "static-share-held",
    rule: "every pod has r/N and b/N, N raised after 0.5 s, lowered after 5.5 s",
    lag: { upUs: 500_000, downUs: 5_500_000 },
    burst: "divided",
  }),
  staticShare({
    name: "static-share-whole-burst",
    rule: "every pod has r/N and the whole b, N known after 0.5 s",
    lag: { upUs: 500_000, downUs: 500_000 },
    burst: "whole",
  }),
];
