/** The sidecar as an app's workload gets it, held to the promises of docs/kubernetes.md. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { configOf } from "../config/loading.ts";
import { find, HAS_KUBECTL, objectsOf, rendered } from "./manifest-files.ts";
import type { KubeObject } from "./published-schemas.ts";

const PATCH = parse(readFileSync("k8s/component/sidecar.yaml", "utf8")) as Workload;
const { spec } = PATCH.spec.template;
const [sidecar] = spec.initContainers;

describe("the injected sidecar", () => {
  it("is a native sidecar with three probes on named ports", () => {
    expect(sidecar.restartPolicy).toBe("Always");
    const ports = sidecar.ports.map(({ name }) => name);
    const probes = [sidecar.startupProbe, sidecar.readinessProbe, sidecar.livenessProbe];
    for (const { httpGet } of probes) expect(ports).toContain(httpGet.port);
    expect(probes.map(({ httpGet }) => httpGet.path)).toEqual(["/startupz", "/readyz", "/livez"]);
  });

  it("meets the restricted Pod Security Standard", () => {
    expect(sidecar.securityContext).toEqual({
      runAsNonRoot: true,
      runAsUser: 65_532,
      runAsGroup: 65_532,
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ["ALL"] },
      seccompProfile: { type: "RuntimeDefault" },
    });
    // The socket is 0660: the app reaches it by the group of the volume.
    expect(spec.securityContext.fsGroup).toBe(65_532);
    const kinds = spec.volumes.map((volume) => Object.keys(volume).find((key) => key !== "name"));
    expect(kinds).toEqual(["emptyDir", "configMap", "secret"]);
  });

  it("has a limit of memory, and none of CPU", () => {
    expect(Object.keys(sidecar.resources.requests)).toEqual(["cpu", "memory"]);
    expect(Object.keys(sidecar.resources.limits)).toEqual(["memory"]);
  });

  it("knows its pod and mounts what it names", () => {
    const env = sidecar.env.map(({ name, valueFrom }) => [name, valueFrom.fieldRef.fieldPath]);
    expect(env).toEqual([
      ["POD_UID", "metadata.uid"],
      ["POD_NAME", "metadata.name"],
      ["POD_NAMESPACE", "metadata.namespace"],
    ]);
    const mounts = new Map(sidecar.volumeMounts.map((mount) => [mount.name, mount]));
    expect([...mounts.keys()].sort()).toEqual(spec.volumes.map(({ name }) => name).sort());
    // A subPath would never be updated.
    for (const mount of mounts.values()) expect(mount).not.toHaveProperty("subPath");
    const { http, grpc } = configOf(readFileSync("k8s/base/aliquot.yaml", "utf8")).listen;
    for (const { socket } of [http, grpc]) {
      expect(socket?.startsWith(`${mounts.get("aliquot-run")?.mountPath}/`)).toBe(true);
    }
    const [, , config] = sidecar.args;
    expect(config).toBe(`${mounts.get("aliquot-config")?.mountPath}/aliquot.yaml`);
  });
});

const KINDS = ["Deployment", "StatefulSet", "DaemonSet", "Job"];
const scratch = mkdtempSync(join(tmpdir(), "aliquot-k8s-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** Lists in brackets, because comments of a patch have no place in them. */
const workload = (kind: string, name: string, labels: string): string => `
apiVersion: ${kind === "Job" ? "batch/v1" : "apps/v1"}
kind: ${kind}
metadata: { name: ${name}, labels: { ${labels} } }
spec:
  template:
    spec:
      initContainers: [{ name: migrate, image: app }]
      containers: [{ name: app, image: app, volumeMounts: [{ name: data, mountPath: /data }] }]
      volumes: [{ name: data, emptyDir: {} }]
`;

// Skipped where kubectl is absent: nothing else applies a component.
describe.skipIf(!HAS_KUBECTL)("rendered with kubectl, the component", () => {
  let objects: KubeObject[];

  beforeAll(() => {
    const texts = KINDS.flatMap((kind) => [
      workload(kind, "with", "aliquot/inject: enabled"),
      workload(kind, "without", "aliquot/inject: disabled"),
    ]);
    writeFileSync(join(scratch, "workloads.yaml"), texts.join("---"));
    const component = relative(scratch, "k8s/component");
    const kustomization = `resources: [workloads.yaml]\ncomponents: [${component}]\n`;
    writeFileSync(join(scratch, "kustomization.yaml"), kustomization);
    objects = rendered(scratch);
  });

  it.each(KINDS)("puts the sidecar before what a %s with the label has", (kind) => {
    const pod = find<Workload>(objects, kind, "with").spec.template.spec;
    expect(pod.initContainers[0]).toEqual(sidecar);
    expect(pod.initContainers.map(({ name }) => name)).toEqual(["aliquot", "migrate"]);
    expect(pod.containers.map(({ name }) => name)).toEqual(["app"]);
    const volumes = pod.volumes.map(({ name }) => name).sort();
    expect(volumes).toEqual([...spec.volumes.map(({ name }) => name), "data"].sort());
  });

  it.each(KINDS)("leaves a %s without the label as it is", (kind) => {
    const pod = find<Workload>(objects, kind, "without").spec.template.spec;
    expect(pod.initContainers.map(({ name }) => name)).toEqual(["migrate"]);
    expect(pod.securityContext).toBeUndefined();
  });

  it("lets the example's app reach the socket", () => {
    const app = find<Workload>(rendered("k8s/example"), "Deployment");
    const [container] = app.spec.template.spec.containers;
    const run = sidecar.volumeMounts.find(({ name }) => name === "aliquot-run");
    expect(container?.volumeMounts).toContainEqual(run);
  });
});

describe("the example's figures", () => {
  const { fallback, drainTimeoutUs } = configOf(readFileSync("k8s/example/aliquot.yaml", "utf8"));

  it("assume as many pods without Redis as the autoscaler may make", () => {
    const autoscaler = find<{ spec: { maxReplicas: number } }>(
      objectsOf("k8s/example/autoscaler.yaml"),
      "HorizontalPodAutoscaler",
    );
    expect(fallback.maxPods).toBeGreaterThanOrEqual(autoscaler.spec.maxReplicas);
  });

  it("leave time for a drain after the app has ended", () => {
    const app = find<Workload>(objectsOf("k8s/example/app.yaml"), "Deployment");
    const { terminationGracePeriodSeconds: seconds } = app.spec.template.spec;
    expect(seconds * 1_000_000).toBeGreaterThanOrEqual(2 * drainTimeoutUs);
  });
});

describe("the right that membership needs", () => {
  it("is to list and watch endpoint slices, in one namespace, and nothing else", () => {
    const role = find<Right>(objectsOf("k8s/membership/role.yaml"), "Role");
    const rule = { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"] };
    expect(role.rules).toEqual([{ ...rule, verbs: ["list", "watch"] }]);
    expect(() => find(objectsOf("k8s/membership/role.yaml"), "RoleBinding")).not.toThrow();
  });

  it("is for the Service that the example's configuration names", () => {
    const { membership } = configOf(readFileSync("k8s/example/aliquot.yaml", "utf8"));
    expect(membership).toMatchObject({ source: "kubernetes", service: "aliquot-fleet" });
    expect(objectsOf("k8s/membership/service.yaml")[0]?.metadata.name).toBe("aliquot-fleet");
  });
});

interface Right {
  readonly rules?: unknown;
}

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
}

interface Sidecar {
  readonly name: string;
  readonly restartPolicy: string;
  readonly args: readonly string[];
  readonly env: readonly {
    readonly name: string;
    readonly valueFrom: { readonly fieldRef: { readonly fieldPath: string } };
  }[];
  readonly ports: readonly { readonly name: string }[];
  readonly startupProbe: Probe;
  readonly readinessProbe: Probe;
  readonly livenessProbe: Probe;
  readonly resources: { readonly requests: object; readonly limits: object };
  readonly securityContext: unknown;
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
}

interface Workload {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly terminationGracePeriodSeconds: number;
        readonly securityContext: { readonly fsGroup: number };
        readonly initContainers: readonly [Sidecar];
        readonly containers: readonly Sidecar[];
        readonly volumes: readonly { readonly name: string }[];
      };
    };
  };
}
