/**
 * The schema of policies for proxies.
 *
 * Patterns of paths and sources of keys are texts here; resolve-policies.ts reads them, so that a
 * problem with one of them names that one and not the list around it.
 */
import * as z from "zod";
import { list, map, patternField, wholeNumberField } from "./fields.ts";
import type { FileForward, FilePolicy } from "./file-shape.ts";
import { nameField } from "./limit-schema.ts";

/** Most policies; each request without a named one looks at them in turn. */
export const POLICIES_MAX = 200;
/** Most checks of one policy: what is decided together, all or nothing. */
export const POLICY_CHECKS_MAX = 16;
/** Most parts of one key. */
export const KEY_PARTS_MAX = 8;
const PATTERNS_MAX = 16;
const METHODS_MAX = 16;
const HOPS_MAX = 16;
const COST_MAX = 1_000_000_000;

const PATH_FORM = "must be a pattern such as /api/** or /users/:id, or a list of patterns";
const KEY_FORM =
  "must be header:NAME, path:NAME, query:NAME, cookie:NAME, client-address, const:VALUE, " +
  "or a list of these";

function textOrList(form: string, most: number): z.ZodType<string | readonly string[]> {
  return z.union([z.string(), list(z.string(), 1, most)], { error: form });
}

const trustedHops = (): z.ZodType<number, number> => wholeNumberField(0, HOPS_MAX);
const ipv6Prefix = (): z.ZodType<number, number> => wholeNumberField(16, 128);

export const forwardSchema: z.ZodType<FileForward> = map(
  "What all policies have in common, unless they say otherwise.",
  {
    trusted_hops: trustedHops()
      .optional()
      .meta({
        description:
          "How many entries at the end of `X-Forwarded-For` were appended by proxies to be " +
          "believed: 1 when only the proxy that asks appends one. 0: the header is ignored. " +
          "Required for `client-address`.",
      }),
    ipv6_prefix: ipv6Prefix().prefault(64).meta({
      description: "Leading bits of an IPv6 address that make a `client-address`.",
    }),
  },
);

const match = map("Which requests the policy is for, when it is not chosen by its name.", {
  methods: list(
    patternField("method", /^[A-Z][A-Z-]{0,31}$/, "must be an HTTP method in capitals, like GET"),
    1,
    METHODS_MAX,
  )
    .optional()
    .meta({ title: "list of methods", description: "HTTP methods. Default: any." }),
  path: textOrList(PATH_FORM, PATTERNS_MAX)
    .optional()
    .meta({
      title: "pattern, or a list of patterns",
      description:
        "Path of the request: `*` is one segment, `**` any number, `:name` one that keys can " +
        "use. Default: any path.",
    }),
});

const check = map("One check.", {
  limit: nameField().meta({ description: "Name of a limit." }),
  key: textOrList(KEY_FORM, KEY_PARTS_MAX).meta({
    title: "source, or a list of sources",
    description:
      "Where the key comes from: `header:NAME`, `path:NAME`, `query:NAME`, `cookie:NAME`, " +
      "`client-address` or `const:VALUE`; several make one key together.",
  }),
  cost: wholeNumberField(0, COST_MAX)
    .prefault(1)
    .meta({ description: "Tokens that a request costs, at most the limit's burst." }),
});

export const policySchema: z.ZodType<FilePolicy> = map(
  "Which checks a request makes that a proxy asks about.",
  {
    name: nameField().meta({
      description: "Name by which `/v1/forward/@NAME` chooses it; unique.",
    }),
    match: match.prefault({}),
    trusted_hops: trustedHops().optional().meta({ description: "See `forward.trusted_hops`." }),
    ipv6_prefix: ipv6Prefix().optional().meta({ description: "See `forward.ipv6_prefix`." }),
    checks: list(check, 1, POLICY_CHECKS_MAX).meta({ description: "Checks, all or nothing." }),
  },
);
