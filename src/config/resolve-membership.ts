/** How the fleet's pods are counted. */
import { isIP } from "node:net";
import { dirname, resolve } from "node:path";
import { type Address, parseAddress } from "./address.ts";
import type { MembershipConfig, MembershipSource } from "./config.ts";
import type { FileMembership } from "./file-shape.ts";
import type { Findings } from "./findings.ts";
import { SERVICE_NAME } from "./membership-fields.ts";
import type { Environment } from "./settings.ts";

const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

interface Surroundings {
  /** There is no store: this pod is the whole fleet. */
  readonly embedded: boolean;
  readonly env: Environment;
  /** Path of the configuration file; other paths begin where it is. */
  readonly configFile: string;
}

type Source = FileMembership["source"];
type OwnField = "pods" | "service" | "namespace" | "service_account" | "resolver";

/** Fields that only some sources look at: elsewhere they would be ignored in silence. */
const FIELDS_OF: { readonly [field in OwnField]: readonly Source[] } = {
  pods: ["static"],
  service: ["kubernetes", "dns"],
  namespace: ["kubernetes"],
  service_account: ["kubernetes"],
  resolver: ["dns"],
};

export function resolveMembership(
  file: FileMembership,
  { embedded, ...surroundings }: Surroundings,
  findings: Findings,
): MembershipConfig {
  const { source } = file;
  if (file.timeout < 2 * file.heartbeat) {
    findings.add(["membership", "timeout"], "must be at least twice membership.heartbeat");
  }
  for (const [field, sources] of Object.entries(FIELDS_OF)) {
    if (file[field as OwnField] === undefined || sources.includes(source)) continue;
    findings.add(
      ["membership", field],
      `is only for source: ${sources.join(" and ")}; leave it out`,
    );
  }
  if (embedded && source !== "redis") {
    findings.add(
      ["membership", "source"],
      `cannot be ${source} without redis: with the embedded store one pod is the whole fleet`,
    );
  }
  const terms = { heartbeatUs: file.heartbeat, timeoutUs: file.timeout };
  return { ...resolveSource(file, surroundings, findings), ...terms };
}

function resolveSource(
  file: FileMembership,
  { env, configFile }: Omit<Surroundings, "embedded">,
  findings: Findings,
): MembershipSource {
  switch (file.source) {
    case "redis":
      return { source: "redis" };
    case "static":
      if (file.pods === undefined) {
        findings.add(["membership", "pods"], "is missing; source: static needs the number of pods");
      }
      return { source: "static", pods: file.pods ?? 1 };
    case "kubernetes": {
      const service = serviceOf(file, findings);
      const { POD_NAMESPACE: namespace } = env;
      if (service !== "" && !SERVICE_NAME.test(service)) {
        const form = "must be the bare name of a Service for source: kubernetes, such as web";
        findings.add(["membership", "service"], form);
      }
      return {
        source: "kubernetes",
        service,
        namespace: file.namespace ?? (namespace || undefined),
        serviceAccount: resolve(dirname(configFile), file.service_account ?? SERVICE_ACCOUNT),
        server: apiServer(env),
      };
    }
    case "dns":
      return {
        source: "dns",
        service: serviceOf(file, findings),
        resolver: resolverOf(file, findings),
      };
  }
}

/** Empty when it is missing, which is told. */
function serviceOf(file: FileMembership, findings: Findings): string {
  if (file.service === undefined) {
    findings.add(
      ["membership", "service"],
      `is missing; source: ${file.source} needs the Service that selects the fleet's pods`,
    );
  }
  return file.service ?? "";
}

function resolverOf(file: FileMembership, findings: Findings): Address | undefined {
  if (file.resolver === undefined) return undefined;
  const address = parseAddress(file.resolver);
  if (address === undefined || isIP(address.host) === 0 || address.port === 0) {
    findings.add(["membership", "resolver"], "must be an IP address and a port above 0");
  }
  return address;
}

/** What Kubernetes tells every container; nothing of it outside a cluster. */
function apiServer(env: Environment): Address | undefined {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: portText } = env;
  const port = Number(portText || 443);
  return host && Number.isInteger(port) && port > 0 && port < 65_536 ? { host, port } : undefined;
}
