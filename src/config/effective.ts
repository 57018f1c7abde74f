/**
 * The effective configuration in the words of the file, defaults filled in and secrets left out:
 * what is printed, logged and hashed. Written to a file it gives the same configuration again.
 */
import type { Fallback, Limit } from "../core/limit.ts";
import type { Policy, PolicyCheck } from "../ports/policy.ts";
import { formatAddress } from "./address.ts";
import type { Config, DecisionListener, MembershipConfig, RedisConfig } from "./config.ts";
import { formatDuration } from "./duration.ts";
import { formatKeySource } from "./key-source.ts";
import { formatPathPattern } from "./path-pattern.ts";
import { formatRate } from "./rate.ts";

/** Without what may differ from pod to pod of one fleet: pod id and file. */
export function describeConfig(config: Omit<Config, "hash">): Record<string, unknown> {
  const { listen } = config;
  return {
    version: 1,
    fleet: config.fleet,
    listen: {
      http: describeListener(listen.http),
      grpc: describeListener(listen.grpc),
      resp: describeListener(listen.resp),
      ops: listen.ops === undefined ? "off" : formatAddress(listen.ops),
      socket_mode: listen.socketMode.toString(8).padStart(4, "0"),
      allow_remote: listen.allowRemote,
    },
    ...(config.redis && { redis: describeRedis(config.redis) }),
    reconcile: { interval: formatDuration(config.reconcile.intervalUs) },
    decision_timeout: formatDuration(config.decisionTimeoutUs),
    drain_timeout: formatDuration(config.drainTimeoutUs),
    membership: describeMembership(config.membership),
    fallback: describeFallback(config.fallback),
    headers: [...config.headers],
    keys_max: config.keysMax,
    workers: config.workers,
    log_level: config.logLevel,
    ops: { show_keys: config.ops.showKeys },
    ...(config.limits.length > 0 && { limits: config.limits.map(describeLimit) }),
    ...(config.policies.length > 0 && { policies: config.policies.map(describePolicy) }),
    ...(config.envoy && {
      envoy: { domains: [...config.envoy.patterns], on_deny: config.envoy.onDeny },
    }),
    resp: {
      inline_limits: config.resp.inlineLimit !== undefined,
      max_inline_limits: config.resp.inlineLimitsMax,
    },
  };
}

function describeListener({ socket, tcp }: DecisionListener): Record<string, unknown> {
  return { socket: socket ?? "off", tcp: tcp === undefined ? "off" : formatAddress(tcp) };
}

function describeRedis(redis: RedisConfig): Record<string, unknown> {
  const { topology, tls } = redis;
  const scheme = tls === undefined ? "redis" : "rediss";
  const url = (address: { host: string; port: number }): string =>
    `${scheme}://${formatAddress(address)}/${redis.database}`;
  return {
    ...(topology.kind === "single" && { url: url(topology.server) }),
    ...(topology.kind === "cluster" && { cluster: topology.servers.map(url) }),
    ...(topology.kind === "sentinel" && {
      sentinel: { name: topology.name, urls: topology.sentinels.map(url) },
    }),
    ...(redis.username !== undefined && { username: redis.username }),
    ...(redis.password?.kind === "file" && { password_file: redis.password.path }),
    ...(tls && {
      tls: {
        ...(tls.caFile !== undefined && { ca_file: tls.caFile }),
        ...(tls.certFile !== undefined && { cert_file: tls.certFile }),
        ...(tls.keyFile !== undefined && { key_file: tls.keyFile }),
        ...(tls.serverName !== undefined && { server_name: tls.serverName }),
      },
    }),
    command_timeout: formatDuration(redis.commandTimeoutUs),
  };
}

/** The API server is no setting, and it may go by different addresses. */
function describeMembership(membership: MembershipConfig): Record<string, unknown> {
  const { source } = membership;
  return {
    source,
    ...(source === "static" && { pods: membership.pods }),
    ...((source === "kubernetes" || source === "dns") && { service: membership.service }),
    ...(source === "kubernetes" && {
      ...(membership.namespace !== undefined && { namespace: membership.namespace }),
      service_account: membership.serviceAccount,
    }),
    ...(source === "dns" &&
      membership.resolver !== undefined && { resolver: formatAddress(membership.resolver) }),
    heartbeat: formatDuration(membership.heartbeatUs),
    timeout: formatDuration(membership.timeoutUs),
  };
}

function describeFallback(fallback: Fallback): Record<string, unknown> {
  return { policy: fallback.policy, margin: fallback.margin, max_pods: fallback.maxPods };
}

function describeLimit(limit: Limit): Record<string, unknown> {
  const overrides = [...limit.overrides].map(([key, override]) => {
    return { key, rate: formatRate(override), burst: override.burst };
  });
  return {
    name: limit.name,
    rate: formatRate(limit),
    burst: limit.burst,
    mode: limit.mode,
    ...(limit.isAuto && { tolerance: limit.tolerance }),
    fallback: describeFallback(limit.fallback),
    shadow: limit.shadow,
    on_deny: limit.onDeny,
    ...(overrides.length > 0 && { overrides }),
  };
}

function describePolicy(policy: Policy): Record<string, unknown> {
  const { methods, paths } = policy;
  return {
    name: policy.name,
    match: {
      ...(methods && { methods: [...methods] }),
      ...(paths && { path: paths.map(formatPathPattern) }),
    },
    trusted_hops: policy.trustedHops,
    ipv6_prefix: policy.ipv6Prefix,
    checks: policy.checks.map(describeCheck),
  };
}

function describeCheck({ limit, key, cost }: PolicyCheck): Record<string, unknown> {
  return { limit, key: key.map(formatKeySource), cost };
}
