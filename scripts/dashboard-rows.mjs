/**
 * What is on the dashboard. A panel is a title, a unit, what it means, and queries with their
 * legends. `$sel` stands for the chosen namespace and fleet, `$lim` for the chosen limits as well.
 */

export const SELECTORS = {
  $sel: 'namespace=~"$namespace", aliquot_fleet=~"$fleet"',
  $lim: 'namespace=~"$namespace", aliquot_fleet=~"$fleet", limit=~"$limit"',
};
const TIME = "$__rate_interval";

const rate = (metric, labels) => `rate(aliquot_${metric}{${labels}}[${TIME}])`;
const p99 = (metric, by) =>
  `histogram_quantile(0.99, sum by (${by}le) (${rate(`${metric}_bucket`, "$sel")}))`;

/** Rows of panels; every row is one question. */
export const ROWS = [
  {
    title: "What do callers get?",
    panels: [
      {
        title: "Admitted",
        unit: "reqps",
        means: "Checks that passed, by limit, over all pods.",
        queries: [
          [`sum by (limit) (${rate("decisions_total", '$lim, outcome="allowed"')})`, "{{limit}}"],
        ],
      },
      {
        title: "Denied",
        unit: "reqps",
        means: "Checks that were refused. Shadow denials passed; they are what would be refused.",
        queries: [
          [`sum by (limit) (${rate("decisions_total", '$lim, outcome="denied"')})`, "{{limit}}"],
          [
            `sum by (limit) (${rate("decisions_total", '$lim, outcome="shadow_denied"')}) > 0`,
            "{{limit}} (shadow)",
          ],
        ],
      },
      {
        title: "Tokens admitted",
        unit: "short",
        means: "Tokens per second, to be held against the rate of the limit.",
        queries: [
          [`sum by (limit) (${rate("tokens_total", '$lim, outcome="allowed"')})`, "{{limit}}"],
        ],
      },
      {
        title: "Decided where",
        unit: "reqps",
        means: "local: in the pod. store: by a trip to Redis. fallback: without Redis.",
        queries: [[`sum by (source) (${rate("decisions_total", "$lim")})`, "{{source}}"]],
      },
      {
        title: "Time to decide, p99",
        unit: "s",
        means: "By the door through which checks come. Envoy gives up after 20 ms.",
        queries: [[p99("decision_duration_seconds", "transport, "), "{{transport}}"]],
      },
      {
        title: "Without a rule",
        unit: "reqps",
        means:
          "Requests of proxies under no policy, and descriptors of Envoy under no rule. They pass.",
        queries: [
          [`sum(${rate("forward_unmatched_total", "$sel")})`, "requests"],
          [`sum(${rate("unmatched_descriptors_total", "$sel")})`, "descriptors"],
        ],
      },
    ],
  },
  {
    title: "Is the limit kept?",
    panels: [
      {
        title: "Over-admission",
        unit: "percentunit",
        means: "Part of the admitted tokens that went beyond rate and burst; it is paid back.",
        queries: [
          [
            `sum by (limit) (${rate("over_admitted_tokens_total", "$lim")})` +
              ` / sum by (limit) (${rate("tokens_total", '$lim, outcome="allowed"')})`,
            "{{limit}}",
          ],
        ],
      },
      {
        title: "Debt",
        unit: "short",
        means: "The largest debt of any bucket, in tokens.",
        queries: [["max by (limit) (aliquot_debt_tokens{$lim})", "{{limit}}"]],
      },
      {
        title: "Share of the pods",
        unit: "percentunit",
        means: "The largest and the smallest part of a rate that a pod refills with.",
        queries: [
          ["max by (limit) (aliquot_share_ratio{$lim})", "{{limit}} max"],
          ["min by (limit) (aliquot_share_ratio{$lim})", "{{limit}} min"],
        ],
      },
      {
        title: "Not yet told to Redis",
        unit: "short",
        means: "Tokens admitted in the pods that Redis does not know of yet, over all pods.",
        queries: [["sum by (limit) (aliquot_unreconciled_tokens{$lim})", "{{limit}}"]],
      },
    ],
  },
  {
    title: "Is Redis there?",
    panels: [
      {
        title: "Pods in fallback",
        unit: "short",
        means: "Pods that keep stricter limits because Redis does not answer them.",
        queries: [
          ["sum(aliquot_fallback_active{$sel})", "in fallback"],
          ["count(aliquot_store_up{$sel} == 0) or vector(0)", "no answer last time"],
        ],
      },
      {
        title: "Exchanges",
        unit: "ops",
        means: "Exchanges with Redis, by how they ended.",
        queries: [[`sum by (outcome) (${rate("reconcile_total", "$sel")})`, "{{outcome}}"]],
      },
      {
        title: "Time of an exchange, p99",
        unit: "s",
        means: "Beyond redis.command_timeout an exchange counts as failed.",
        queries: [[p99("reconcile_duration_seconds", ""), "p99"]],
      },
      {
        title: "Keys exchanged",
        unit: "ops",
        means: "What Redis's load depends on: docs/operations.md.",
        queries: [[`sum(${rate("reconcile_keys_total", "$sel")})`, "keys"]],
      },
      {
        title: "Given up",
        unit: "short",
        means: "Tokens whose report was given up; stored values that were spoilt or gone.",
        queries: [
          [`sum(increase(aliquot_lost_tokens_total{$sel}[${TIME}]))`, "tokens lost"],
          [`sum(increase(aliquot_damaged_keys_total{$lim}[${TIME}]))`, "values damaged"],
          [`sum(increase(aliquot_lost_keys_total{$lim}[${TIME}]))`, "keys lost"],
        ],
      },
    ],
  },
  {
    title: "Are the pods well?",
    panels: [
      {
        title: "Live pods",
        unit: "short",
        means: "As the pods count them, and as Prometheus does. All three should be one line.",
        queries: [
          ["max(aliquot_live_pods{$sel})", "counted, most"],
          ["min(aliquot_live_pods{$sel})", "counted, least"],
          ["count(aliquot_live_pods{$sel})", "scraped"],
        ],
      },
      {
        title: "Listing",
        unit: "short",
        means: "Pods behind the Service, where membership asks for them, and pods that cannot ask.",
        queries: [
          ["max(aliquot_listed_pods{$sel})", "listed"],
          ["count(aliquot_listing_up{$sel} == 0)", "cannot ask"],
        ],
      },
      {
        title: "Configurations in force",
        unit: "short",
        means: "More than one while a change spreads, and pods that refused the last one.",
        queries: [
          ["count(count by (hash) (aliquot_config_info{$sel}))", "different"],
          ["count(aliquot_config_last_reload_successful{$sel} == 0) or vector(0)", "refused"],
        ],
      },
      {
        title: "Workers",
        unit: "short",
        means: "Processes that answer checks; one in each sidecar unless `workers` says more.",
        queries: [
          ["sum(aliquot_workers_up{$sel})", "up"],
          [`sum(increase(aliquot_worker_restarts_total{$sel}[${TIME}]))`, "replaced"],
        ],
      },
      {
        title: "Keys",
        unit: "short",
        means: "Keys that pods track, and keys evicted to make room.",
        queries: [
          ["sum(aliquot_tracked_keys{$sel})", "tracked"],
          [`sum(increase(aliquot_evicted_keys_total{$sel}[${TIME}]))`, "evicted"],
        ],
      },
      {
        title: "Processor",
        unit: "short",
        means: "Cores that the sidecars use.",
        queries: [
          [
            `sum by (pod) (rate(process_cpu_seconds_total{$sel, container="aliquot"}[${TIME}]))`,
            "{{pod}}",
          ],
        ],
      },
      {
        title: "Memory",
        unit: "bytes",
        means: "Of each sidecar; the limit in k8s/component is 256 MiB.",
        queries: [
          ['max by (pod) (process_resident_memory_bytes{$sel, container="aliquot"})', "{{pod}}"],
        ],
      },
      {
        title: "Event loop lag, p99",
        unit: "s",
        means: "How long a sidecar stands still; a throttled or starved one answers late.",
        queries: [
          ['max by (pod) (nodejs_eventloop_lag_p99_seconds{$sel, container="aliquot"})', "{{pod}}"],
        ],
      },
    ],
  },
];

/** Choices at the top of the dashboard, each from the labels of a metric. */
export const CHOICES = [
  ["namespace", "label_values(aliquot_build_info, namespace)"],
  ["fleet", 'label_values(aliquot_build_info{namespace=~"$namespace"}, aliquot_fleet)'],
  ["limit", "label_values(aliquot_share_ratio{$sel}, limit)"],
];
