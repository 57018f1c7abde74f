/** The schema of limits and of what they do while the store is out of reach. */
import * as z from "zod";
import type { OnDeny } from "../core/limit.ts";
import {
  choiceField,
  keyField,
  list,
  map,
  partField,
  patternField,
  rateField,
  switchField,
  wholeNumberField,
} from "./fields.ts";
import type { FileDescriptorTerms, FileFallback, FileLimit } from "./file-shape.ts";

/** Most overrides of one limit. */
export const OVERRIDES_MAX = 10_000;

/** Most pods that a configuration may name. */
export const PODS_MAX = 10_000;

/** The pattern of a limit's name. */
export const LIMIT_NAME_PATTERN: RegExp = /^[a-z][a-z0-9-]{0,62}$/;

/** A name of a limit or of a policy. */
export function nameField(): z.ZodType<string, string> {
  return patternField(
    "name",
    LIMIT_NAME_PATTERN,
    "must start with a-z and hold only a-z, 0-9 and -, at most 63 characters",
  );
}

const fallbackPolicy = choiceField(["local", "open", "closed"]);

export const fallbackSchema: z.ZodType<FileFallback> = map(
  "What limits do while Redis cannot be reached, unless they say otherwise.",
  {
    policy: fallbackPolicy.prefault("local").meta({
      description:
        "`local`: each pod keeps a stricter limit of its own; `open`: admit and count; " +
        "`closed`: refuse with 503.",
    }),
    margin: partField()
      .prefault(0.9)
      .meta({ description: "Part of rate and burst that the whole fleet may use when isolated." }),
    max_pods: wholeNumberField(1, PODS_MAX).prefault(20).meta({
      description: "Pods to assume when this pod has never joined the fleet.",
    }),
  },
);

function limitMode(): z.ZodType<FileLimit["mode"], FileLimit["mode"]> {
  return choiceField(["auto", "hybrid", "leased", "exact"]);
}

/** What a denied check does to a limit, where a file may say it. */
export function onDenyField(): z.ZodType<OnDeny, OnDeny> {
  return choiceField(["keep", "debit"]);
}

const ON_DENY =
  "What a denied check does to this limit: `keep` spends nothing, `debit` spends the cost " +
  "anyway, also into debt.";

const limitFallback = z
  .union(
    [
      fallbackPolicy,
      map("Overrides of the general `fallback`, field by field.", {
        policy: fallbackPolicy.optional().meta({ description: "See `fallback.policy`." }),
        margin: partField().optional().meta({ description: "See `fallback.margin`." }),
        max_pods: wholeNumberField(1, PODS_MAX)
          .optional()
          .meta({ description: "See `fallback.max_pods`." }),
      }),
    ],
    { error: "must be local, open or closed, or a map with policy, margin, max_pods" },
  )
  .meta({
    title: "policy, or a map",
    description: "In place of the general `fallback`: its policy, or any of its fields.",
  });

/** What a file of envoyproxy/ratelimit may say about one of its limits beyond that format. */
export const descriptorTermsSchema: z.ZodType<FileDescriptorTerms> = map(
  "How Aliquot keeps the limit beside it.",
  {
    burst: wholeNumberField(1).optional().meta({ description: "Default: `requests_per_unit`." }),
    mode: limitMode().optional(),
    fallback: limitFallback.optional(),
    on_deny: onDenyField().optional().meta({ description: ON_DENY }),
  },
);

const override = map("A rate and burst for a single key, in place of the limit's.", {
  key: keyField().meta({ description: "The key, compared byte for byte." }),
  rate: rateField().meta({ description: "Tokens per span, for the whole fleet." }),
  burst: wholeNumberField(1)
    .optional()
    .meta({ description: "Default: one second of this rate, at least 1." }),
});

export const limitSchema: z.ZodType<FileLimit> = map(
  "A limit that all pods of the fleet obey together.",
  {
    name: nameField().meta({ description: "Name that checks give; unique." }),
    rate: rateField().meta({
      description:
        "Whole tokens per span, `N/s`, `N/m`, `N/h`, `N/d` or `N/15m`, for the whole fleet.",
    }),
    burst: wholeNumberField(1)
      .optional()
      .meta({
        description:
          "Most tokens that can be admitted at one instant, for the whole fleet. " +
          "Default: one second of the rate, at least 1.",
      }),
    mode: limitMode()
      .prefault("auto")
      .meta({
        description:
          "`auto` chooses by rate, burst and the fleet's size; `hybrid` shares with a bound, " +
          "`leased` is never exceeded, `exact` decides in Redis.",
      }),
    tolerance: partField().optional().meta({
      description:
        "For `auto`: the over-admission bound it may accept, as a part of burst. Default 0.5.",
    }),
    fallback: limitFallback.optional(),
    shadow: switchField()
      .prefault(false)
      .meta({ description: "Denials are counted but not enforced." }),
    on_deny: onDenyField().prefault("keep").meta({ description: ON_DENY }),
    overrides: list(override, 0, OVERRIDES_MAX)
      .optional()
      .meta({ description: "Single keys with a rate and burst of their own." }),
  },
);
