/**
 * N independent buckets: every pod keeps the whole limit for itself.
 *
 * Rule: each pod has a bucket of rate r and burst b. Source: what Envoy's local rate limit filter,
 * Kong's `local` policy and ingress-nginx do without further settings; the limit is multiplied by
 * the number of replicas (kubernetes/ingress-nginx 5959, Kong/kong 6724, envoyproxy/gateway 4447).
 */
import { NO_STORE, type Scheme } from "../scheme.ts";
import { LocalBucket } from "./local-bucket.ts";
import { PodBuckets } from "./pod-buckets.ts";

export const INDEPENDENT: Scheme = {
  name: "independent",
  rule: "every pod has the whole limit",
  source: "Envoy local rate limit, Kong local policy, ingress-nginx",
  start: () => ({
    store: NO_STORE,
    node: (context) => {
      const buckets = new PodBuckets(
        context.limits,
        (limit, nowUs) => new LocalBucket(limit, nowUs),
      );
      return { request: (checks, answer) => answer(buckets.decide(context.nowUs(), checks)) };
    },
  }),
};
