/**
 * Static r/N: every pod has an equal part of the limit, whatever its load.
 *
 * Rule: a bucket of rate r/N and burst b/N, where N is noticed with a delay; `burst: "whole"` leaves
 * the burst undivided. Source: Envoy's `local_cluster_rate_limit` (local_ratelimit_impl.cc at
 * 016c0c8; refill divided, `max_tokens` not), Mimir and Loki (limit by ring members), NGINX Ingress
 * (limit by pods).
 *
 * All pods see the same count, as informers of one cluster do; a bucket is first filled by the true
 * count, which is the kinder reading: a new pod brings b/N and not b/(what N was).
 */
import { type FleetLag, NO_STORE, type NodeContext, type Scheme } from "../scheme.ts";
import { LocalBucket } from "./local-bucket.ts";
import { PodBuckets } from "./pod-buckets.ts";

interface StaticShare {
  readonly name: string;
  readonly rule: string;
  readonly lag: FleetLag;
  readonly burst: "divided" | "whole";
}

/** The count that all pods of a run believe in. */
interface SharedCount {
  pods: number;
}

function staticShare({ name, rule, lag, burst }: StaticShare): Scheme {
  return {
    name,
    rule,
    source: "Envoy local_cluster_rate_limit, Mimir, NGINX Ingress",
    start({ podsFactor }) {
      const count: SharedCount = { pods: 0 };
      return {
        store: NO_STORE,
        node(context) {
          const believed = (pods: number): number => Math.max(1, Math.round(pods * podsFactor));
          const burstPart = (pods: number): number => (burst === "whole" ? 1 : 1 / pods);
          const buckets = new PodBuckets(context.limits, (limit, nowUs) => {
            const born = believed(context.livePods());
            const bucket = new LocalBucket(limit, nowUs, 1, burstPart(born));
            bucket.divide(nowUs, 1 / believed(count.pods), burstPart(born));
            return bucket;
          });
          watch(context, lag, count, (pods) => {
            buckets.divide(context.nowUs(), 1 / believed(pods), burstPart(believed(pods)));
          });
          return {
            request: (checks, answer) => answer(buckets.decide(context.nowUs(), checks)),
            inspect: () => ({ pods: believed(count.pods), share: 1 / believed(count.pods) }),
          };
        },
      };
    },
  };
}

/** A new pod takes over what the others believe; afterwards all follow the fleet with the lag. */
function watch(
  context: NodeContext<unknown>,
  lag: FleetLag,
  count: SharedCount,
  changed: (pods: number) => void,
): void {
  let isBorn = false;
  context.watchFleet(lag, (pods) => {
    // At time 0 the fleet is put up pod by pod: no pod has a past to be behind of.
    if (isBorn || context.nowUs() === 0 || count.pods === 0) count.pods = pods;
    changed(count.pods);
  });
  isBorn = true;
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
