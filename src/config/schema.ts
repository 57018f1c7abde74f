/**
 * The configuration file, field by field: the one source of validation, of the JSON Schema and of
 * the table in docs/configuration.md. Maps are strict: a misspelt field is a problem, never a
 * default in silence.
 */
import * as z from "zod";
import { US_PER_MS, US_PER_SECOND } from "../core/units.ts";
import { envoySchema, grpcSchema } from "./envoy-schema.ts";
import {
  choiceField,
  durationField,
  filePathField,
  list,
  listenField,
  map,
  patternField,
  socketField,
  socketModeField,
  switchField,
  wholeNumberField,
} from "./fields.ts";
import type { FileShape } from "./file-shape.ts";
import { fallbackSchema, limitSchema, PODS_MAX } from "./limit-schema.ts";
import { namespaceField, resolverField, serviceField } from "./membership-fields.ts";
import { forwardSchema, POLICIES_MAX, policySchema } from "./policy-schema.ts";
import { redisSchema } from "./redis-schema.ts";
import { respListenSchema, respSchema } from "./resp-schema.ts";

const MINUTE = 60 * US_PER_SECOND;

/** Most limits of one file: each has its own metrics, and a page of metrics must stay small. */
export const LIMITS_MAX = 1_000;
const KEYS_MAX_MAX = 10_000_000;
/** A fleet's accuracy falls with its members, and no node has a use for more processes. */
const WORKERS_MAX = 64;

const fleetName = /^[a-z0-9-]{1,63}$/;
const http = map("Where the HTTP decision API listens.", {
  socket: socketField().prefault("/run/aliquot/http.sock").meta({ description: "Unix socket." }),
  tcp: listenField()
    .prefault("127.0.0.1:8790")
    .meta({ description: "TCP address. Port 0 takes a free port." }),
});

const listen = map("Listeners.", {
  http: http.prefault({}),
  grpc: grpcSchema.prefault({}),
  resp: respListenSchema.prefault({}),
  ops: listenField()
    .prefault("0.0.0.0:8792")
    .meta({ description: "TCP address of probes and metrics: no decisions, no writes." }),
  socket_mode: socketModeField()
    .prefault("0660")
    .meta({ description: "Permissions of the Unix sockets." }),
  allow_remote: switchField()
    .prefault(false)
    .meta({
      description:
        "Lets a decision listener be bound to an address that other machines can reach. " +
        "There is no authentication.",
    }),
});

const membership = map("How the live pods of the fleet are counted.", {
  source: choiceField(["redis", "kubernetes", "dns", "static"])
    .prefault("redis")
    .meta({
      description:
        "`redis`: by heartbeats in the store. `kubernetes`, `dns`: by these and by a Service, " +
        "which tells also while the store is away. `static`: as configured.",
    }),
  pods: wholeNumberField(1, PODS_MAX)
    .optional()
    .meta({ description: "Number of pods, for `source: static` only, and required there." }),
  service: serviceField().meta({
    description:
      "Service that selects exactly the pods of this fleet, for `kubernetes` and `dns`, and " +
      "required there. For `dns` a headless one, short or with its domains.",
  }),
  namespace: namespaceField().meta({
    description:
      "Namespace of the Service, for `kubernetes`; default: `POD_NAMESPACE`, else that of the " +
      "service account.",
  }),
  service_account: filePathField()
    .optional()
    .meta({
      description:
        "Folder with the token of the service account, for `kubernetes`; default: " +
        "`/var/run/secrets/kubernetes.io/serviceaccount`.",
    }),
  resolver: resolverField().meta({
    description: "DNS server `host:port` to ask, for `dns`; default: as resolv.conf says.",
  }),
  heartbeat: durationField(100 * US_PER_MS, MINUTE)
    .prefault("1s")
    .meta({ description: "A pod says this often that it is alive." }),
  timeout: durationField(200 * US_PER_MS, 10 * MINUTE)
    .prefault("5s")
    .meta({ description: "A silent pod is dropped after this; at least twice the heartbeat." }),
});

const headerShape = choiceField(["ietf", "x-delta", "x-epoch", "draft-03"]);

/** Sections in the order in which they are documented. */
export const sections: { readonly [K in keyof FileShape]-?: z.ZodType<FileShape[K]> } = {
  version: z.literal(1, { error: "must be 1" }).meta({
    title: "1",
    description: "Version of this format.",
  }),
  fleet: patternField("name", fleetName, "must be 1 to 63 characters of a-z, 0-9 and -")
    .optional()
    .meta({
      description:
        "Pods with the same fleet and Redis share their limits. Required with `redis`; " +
        "default without: `local`.",
    }),
  listen: listen.prefault({}),
  redis: redisSchema.optional(),
  reconcile: map("Exchange with the store.", {
    interval: durationField(20 * US_PER_MS, 10 * US_PER_SECOND)
      .prefault("100ms")
      .meta({
        description:
          "Time between two exchanges of one key; limits with a small burst use a shorter one.",
      }),
  }).prefault({}),
  decision_timeout: durationField(US_PER_MS, US_PER_SECOND)
    .prefault("10ms")
    .meta({ description: "No check is held for longer, whatever Redis does." }),
  drain_timeout: durationField(100 * US_PER_MS, 10 * MINUTE)
    .prefault("10s")
    .meta({ description: "A stop takes at most this long." }),
  membership: membership.prefault({}),
  fallback: fallbackSchema.prefault({}),
  headers: z
    .array(headerShape, { error: "must be a list of ietf, x-delta, x-epoch, draft-03" })
    .max(4, { error: "must be a list of at most 4" })
    .prefault(["ietf"])
    .meta({
      title: "list of ietf | x-delta | x-epoch | draft-03",
      description:
        "Shapes of the RateLimit headers. `x-delta`, `x-epoch` and `draft-03` use the same " +
        "names: at most one of them.",
    }),
  keys_max: wholeNumberField(1, KEYS_MAX_MAX)
    .prefault(100_000)
    .meta({ description: "Most keys that a pod tracks at once; the longest idle give way." }),
  workers: wholeNumberField(1, WORKERS_MAX)
    .prefault(1)
    .meta({
      description:
        "Processes that share the listeners and take part in the fleet like so many pods; the " +
        "same number in all pods of the fleet.",
    }),
  log_level: choiceField(["error", "warn", "info", "debug", "trace"])
    .prefault("info")
    .meta({ description: "Least severity of log lines." }),
  ops: map("What the ops listener shows.", {
    show_keys: switchField()
      .prefault(false)
      .meta({
        description:
          "Status page, `/status` and `aliquot top` show the busiest keys as callers gave them, " +
          "to whoever can reach the listener; `false`: their digests.",
      }),
  }).prefault({}),
  limits: list(limitSchema, 1, LIMITS_MAX).optional().meta({
    description: "The limits, at least one unless `envoy` or callers (`resp`) bring some.",
  }),
  forward: forwardSchema.prefault({}),
  policies: list(policySchema, 0, POLICIES_MAX)
    .prefault([])
    .meta({ description: "Which checks `/v1/forward` makes; the first that matches counts." }),
  envoy: envoySchema.optional(),
  resp: respSchema.prefault({}),
};

/** The whole file. */
export const fileSchema: z.ZodType<FileShape> = map("Configuration of Aliquot.", sections);
