/** The schema of what serves Envoy: where the gRPC service listens, and the rules it follows. */
import type { z } from "zod";
import { list, listenField, map, patternField, socketField } from "./fields.ts";
import type { FileEnvoy, FileListen } from "./file-shape.ts";
import { onDenyField } from "./limit-schema.ts";

/** Most patterns of files. */
const PATTERNS_MAX = 100;

export const grpcSchema: z.ZodType<FileListen["grpc"]> = map(
  "Where Envoy's rate limit service and gRPC health listen.",
  {
    socket: socketField().prefault("/run/aliquot/grpc.sock").meta({ description: "Unix socket." }),
    tcp: listenField()
      .prefault("off")
      .meta({ description: "TCP address; `127.0.0.1:8791` is the conventional one." }),
  },
);

export const envoySchema: z.ZodType<FileEnvoy> = map("Rules for Envoy's rate limit service.", {
  domains: list(
    patternField("path", /^[^\0]{1,4096}$/, "must be the path of a file, `*` and `?` allowed"),
    1,
    PATTERNS_MAX,
  ).meta({
    title: "list of paths",
    description:
      "Files of envoyproxy/ratelimit, one domain each, with the wildcards `*` and `?`. Relative " +
      "paths begin where this file is.",
  }),
  on_deny: onDenyField()
    .prefault("keep")
    .meta({ description: "`on_deny` of the limits in these files that name none of their own." }),
});
