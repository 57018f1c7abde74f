/** The schema of the shared store. */
import type { z } from "zod";
import { US_PER_MS, US_PER_SECOND } from "../core/units.ts";
import { durationField, filePathField, list, map, patternField, redisUrlField } from "./fields.ts";
import type { FileRedis } from "./file-shape.ts";

/** Most server addresses of one cluster or sentinel group; others are learned from these. */
const SERVERS_MAX = 64;

export const redisSchema: z.ZodType<FileRedis> = map(
  "The shared store. Without this section the store is embedded: one pod is the whole fleet. " +
    "One of `url`, `cluster` and `sentinel`.",
  {
    url: redisUrlField().optional().meta({ description: "A single server." }),
    cluster: list(redisUrlField(), 1, SERVERS_MAX)
      .optional()
      .meta({ title: "list of URLs", description: "Some servers of a Redis Cluster." }),
    sentinel: map("A primary that Sentinels watch over.", {
      name: patternField("text", /^\S{1,128}$/, "must be the name of the primary").meta({
        description: "Name of the primary, as the Sentinels know it.",
      }),
      urls: list(redisUrlField(), 1, SERVERS_MAX).meta({
        title: "list of URLs",
        description: "The Sentinels.",
      }),
    }).optional(),
    username: patternField("text", /^\S{1,256}$/, "must be a user name without spaces")
      .optional()
      .meta({ description: "ACL user. Default: the server's default user." }),
    password_file: filePathField()
      .optional()
      .meta({
        description:
          "File that holds the password, read at each connection. The environment variable " +
          "`ALIQUOT_REDIS_PASSWORD` takes its place.",
      }),
    tls: map("TLS details for `rediss://` URLs.", {
      ca_file: filePathField()
        .optional()
        .meta({ description: "Certificates to trust, PEM. Default: those of the system." }),
      cert_file: filePathField().optional().meta({ description: "Client certificate, PEM." }),
      key_file: filePathField().optional().meta({ description: "Key of the client certificate." }),
      server_name: patternField("text", /^[A-Za-z0-9._-]{1,253}$/, "must be a host name")
        .optional()
        .meta({ description: "Name that the server's certificate must bear." }),
    }).optional(),
    command_timeout: durationField(5 * US_PER_MS, 10 * US_PER_SECOND)
      .prefault("50ms")
      .meta({
        description: "A reply that takes longer counts as lost; decisions never wait for it.",
      }),
  },
);
