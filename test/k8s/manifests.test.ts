/**
 * Every manifest in k8s/: that it is one, and that the promises of docs/kubernetes.md are in it.
 */
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { configOf, problemsOf } from "../config/loading.ts";

const FOLDER = "k8s";
const FILES = readdirSync(FOLDER, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".yaml"))
  .map((name) => join(FOLDER, name))
  .sort();
const CONFIGS = FILES.filter((path) => path.endsWith("/aliquot.yaml"));
const MANIFESTS = FILES.filter((path) => !path.endsWith("/aliquot.yaml"));

const read = (path: string): Workload => parse(readFileSync(path, "utf8")) as Workload;

describe("the manifests", () => {
  it.each(MANIFESTS)("are objects of Kubernetes or kustomize: %s", (path) => {
    const documents = parseAllDocuments(readFileSync(path, "utf8"));
    expect(documents.length).toBeGreaterThan(0);
    for (const document of documents) {
      expect(document.errors).toEqual([]);
      const { apiVersion, kind, metadata } = document.toJS() as Record<string, unknown>;
      expect(apiVersion).toMatch(/^([a-z0-9.]+\/)?v\d[a-z0-9]*$/);
      expect(kind).toMatch(/^[A-Z][A-Za-z]+$/);
      if (!path.endsWith("kustomization.yaml")) expect(metadata).toHaveProperty("name");
    }
  });

  it.each(FILES.filter((path) => path.endsWith("kustomization.yaml")))(
    "name only files that exist, and all of them: %s",
    (path) => {
      const folder = path.slice(0, path.lastIndexOf("/"));
      const text = readFileSync(path, "utf8");
      for (const name of readdirSync(folder)) {
        if (name !== "kustomization.yaml") expect(text).toContain(name);
      }
    },
  );

  it.each(CONFIGS)("hold a configuration that is accepted: %s", (path) => {
    expect(problemsOf(readFileSync(path, "utf8"), { path })).toEqual([]);
  });
});

const SIDECARS = ["deployment", "statefulset"].map((kind) => {
  const path = join(FOLDER, "component", `sidecar-${kind}.yaml`);
  return [path, read(path)] as const;
});

describe("the injected sidecar", () => {
  it("is the same for every kind of workload", () => {
    const [first, ...others] = SIDECARS.map(([, manifest]) => manifest.spec);
    for (const other of others) expect(other).toEqual(first);
  });

  it.each(SIDECARS)(
    "is a native sidecar with three probes on named ports: %s",
    (_path, manifest) => {
      const [sidecar] = manifest.spec.template.spec.initContainers;
      expect(sidecar.restartPolicy).toBe("Always");
      const ports = sidecar.ports.map(({ name }) => name);
      const paths = [sidecar.startupProbe, sidecar.readinessProbe, sidecar.livenessProbe].map(
        ({ httpGet }) => {
          expect(ports).toContain(httpGet.port);
          return httpGet.path;
        },
      );
      expect(paths).toEqual(["/startupz", "/readyz", "/livez"]);
    },
  );

  it.each(SIDECARS)("meets the restricted Pod Security Standard: %s", (_path, manifest) => {
    const { spec } = manifest.spec.template;
    expect(spec.initContainers[0].securityContext).toEqual({
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
    for (const volume of spec.volumes) {
      expect(["emptyDir", "configMap"]).toContain(Object.keys(volume).find((k) => k !== "name"));
    }
  });

  it.each(SIDECARS)("knows its pod and mounts what it names: %s", (_path, manifest) => {
    const { spec } = manifest.spec.template;
    const [sidecar] = spec.initContainers;
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
    const { socket } = configOf(readFileSync("k8s/base/aliquot.yaml", "utf8")).listen.http;
    expect(socket?.startsWith(`${mounts.get("aliquot-run")?.mountPath}/`)).toBe(true);
    const [, , config] = sidecar.args;
    expect(config).toBe(`${mounts.get("aliquot-config")?.mountPath}/aliquot.yaml`);
  });
});

describe("the right that membership needs", () => {
  it("is to list and watch endpoint slices, in one namespace, and nothing else", () => {
    const [role, binding] = parseAllDocuments(readFileSync("k8s/membership/role.yaml", "utf8")).map(
      (document) => document.toJS() as Right,
    );
    expect(role?.kind).toBe("Role");
    expect(role?.rules).toEqual([
      {
        apiGroups: ["discovery.k8s.io"],
        resources: ["endpointslices"],
        verbs: ["list", "watch"],
      },
    ]);
    expect(binding?.kind).toBe("RoleBinding");
  });

  it("is for the Service that the example's configuration names", () => {
    const { membership } = configOf(readFileSync("k8s/example/aliquot.yaml", "utf8"));
    expect(membership).toMatchObject({ source: "kubernetes", service: "aliquot-fleet" });
    expect(readFileSync("k8s/membership/service.yaml", "utf8")).toContain("name: aliquot-fleet");
  });
});

const hasKubectl = spawnSync("kubectl", ["version", "--client"]).status === 0;

// kubectl is no part of what the tests may ask for; where it is, the folders must render.
describe.skipIf(!hasKubectl)("rendered with kubectl", () => {
  it("gives the example's app a sidecar and keeps the rest of it", () => {
    const run = spawnSync("kubectl", ["kustomize", "k8s/example"], { encoding: "utf8" });
    expect(run.stderr).toBe("");
    const objects = parseAllDocuments(run.stdout).map((document) => document.toJS() as Named);
    expect(objects.map(({ kind }) => kind).sort()).toEqual([
      "ConfigMap",
      "Deployment",
      "HorizontalPodAutoscaler",
      "Role",
      "RoleBinding",
      "Service",
    ]);
    for (const { metadata } of objects) expect(metadata.namespace).toBe("checkout");
    const app = objects.find(({ kind }) => kind === "Deployment") as never as Workload;
    const { containers, initContainers } = app.spec.template.spec;
    expect(initContainers.map(({ name }) => name)).toEqual(["aliquot"]);
    expect(containers.map(({ name }) => name)).toEqual(["app"]);
    const mounts = containers[0]?.volumeMounts.map(({ mountPath }) => mountPath);
    expect(mounts).toEqual(["/run/aliquot"]);
  });

  it("gives a base that is only configuration", () => {
    const run = spawnSync("kubectl", ["kustomize", "k8s/base"], { encoding: "utf8" });
    expect(run.stderr).toBe("");
    expect((parse(run.stdout) as Named).kind).toBe("ConfigMap");
  });
});

interface Named {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

interface Right {
  readonly kind: string;
  readonly rules?: unknown;
}

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
}

interface Mount {
  readonly name: string;
  readonly mountPath: string;
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
  readonly securityContext: unknown;
  readonly volumeMounts: readonly Mount[];
}

interface Workload {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly securityContext: { readonly fsGroup: number };
        readonly initContainers: readonly [Sidecar];
        readonly containers: readonly Sidecar[];
        readonly volumes: readonly { readonly name: string }[];
      };
    };
  };
}
