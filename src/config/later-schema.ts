/** The schema of what is not yet available; see not-yet.ts for what is refused. */
import { z } from "zod";
import { list, listenField, map, socketField } from "./fields.ts";
import { nameField } from "./limit-schema.ts";

export const grpcSchema: z.ZodType = map(
  "Where the gRPC rate limit service listens. Not yet available.",
  {
    socket: socketField().optional().meta({ description: "Unix socket." }),
    tcp: listenField().optional().meta({ description: "TCP address." }),
  },
);

export const policySchema: z.ZodType = map("Which checks a forwarded request makes.", {
  name: nameField().meta({ description: "Name of the policy." }),
  match: map("Which requests the policy is for.", {
    methods: list(z.string(), 1, 16)
      .optional()
      .meta({ title: "list of methods", description: "HTTP methods." }),
    path: z.string().optional().meta({ title: "text", description: "Pattern of the path." }),
  }).optional(),
  checks: list(
    map("One check.", {
      limit: nameField().meta({ description: "Name of a limit." }),
      key: z.string().meta({ title: "text", description: "Where the key comes from." }),
    }),
    1,
    16,
  ).meta({ description: "Checks, all or nothing." }),
});

/** Files of envoyproxy/ratelimit. */
export const envoySchema: z.ZodType = map("Envoy's rate limit service. Not yet available.", {
  domains: list(z.string(), 1, 100).meta({
    title: "list of paths",
    description: "Files of envoyproxy/ratelimit, with wildcards.",
  }),
});
