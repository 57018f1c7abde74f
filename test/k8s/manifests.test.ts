/** Every file in k8s/: that it is what it says, alone and rendered with the others. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { problemsOf } from "../config/loading.ts";
import {
  CONFIGS,
  HAS_KUBECTL,
  KUSTOMIZATIONS,
  MANIFESTS,
  objectsOf,
  rendered,
} from "./manifest-files.ts";
import { type KubeObject, schemaProblems } from "./published-schemas.ts";

/** The one file that is no object of its own, but a patch to the workloads of an app. */
const PATCH = "k8s/component/sidecar.yaml";

describe("the manifests", () => {
  it.each(MANIFESTS.filter((path) => path !== PATCH))(
    "are objects as the published schemas want them: %s",
    async (path) => {
      const objects = objectsOf(path);
      expect(objects.length).toBeGreaterThan(0);
      for (const object of objects) expect(await schemaProblems(object)).toEqual([]);
    },
  );

  it("patch workloads with what a pod may have", async () => {
    const [patch] = objectsOf(PATCH) as unknown as [{ spec: { template: { spec: object } } }];
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "app" } };
    const spec = { ...patch.spec.template.spec, containers: [{ name: "app", image: "app" }] };
    expect(await schemaProblems({ ...pod, spec } as KubeObject)).toEqual([]);
  });

  it.each(KUSTOMIZATIONS)("name only files that exist, and all of them: %s", (path) => {
    const text = readFileSync(path, "utf8");
    for (const name of readdirSync(dirname(path))) {
      if (name !== "kustomization.yaml") expect(text).toContain(name);
    }
  });

  it.each(CONFIGS)("hold a configuration that is accepted: %s", (path) => {
    expect(problemsOf(readFileSync(path, "utf8"), { path })).toEqual([]);
  });
});

const scratch = mkdtempSync(join(tmpdir(), "aliquot-k8s-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** Components cannot be rendered alone: an overlay of nothing else takes them in. */
function renderedComponent(folder: string): KubeObject[] {
  const path = relative(scratch, folder);
  writeFileSync(join(scratch, "kustomization.yaml"), `components: [${path}]\n`);
  return rendered(scratch);
}

const ofKind = (kind: string): string[] =>
  KUSTOMIZATIONS.filter((path) => readFileSync(path, "utf8").includes(`\nkind: ${kind}\n`)).map(
    dirname,
  );
const named = ({ kind, metadata }: KubeObject): string => `${kind} ${metadata.name}`;

// Skipped where kubectl is absent: nothing else renders a kustomization.
describe.skipIf(!HAS_KUBECTL)("rendered with kubectl", () => {
  it.each(ofKind("Kustomization"))("every object is as the schemas want it: %s", async (folder) => {
    const objects = rendered(folder);
    expect(objects.length).toBeGreaterThan(0);
    for (const object of objects) expect(await schemaProblems(object)).toEqual([]);
  });

  it.each(ofKind("Component").filter((folder) => folder !== dirname(PATCH)))(
    "every component is good for itself: %s",
    async (folder) => {
      const objects = renderedComponent(folder);
      expect(objects.length).toBeGreaterThan(0);
      for (const object of objects) expect(await schemaProblems(object)).toEqual([]);
    },
  );

  it("the example is an app, its autoscaler, its Redis and what counts the fleet", () => {
    const objects = rendered("k8s/example");
    for (const { metadata } of objects) expect(metadata.namespace).toBe("checkout");
    expect(
      objects
        .map(named)
        .map((name) => name.replace(/(ConfigMap .+)-[a-z0-9]{10}$/, "$1"))
        .sort(),
    ).toEqual([
      "ConfigMap aliquot-config",
      "ConfigMap aliquot-redis",
      "Deployment checkout",
      "HorizontalPodAutoscaler checkout",
      "NetworkPolicy aliquot-ops",
      "NetworkPolicy aliquot-redis",
      "PodDisruptionBudget aliquot-redis",
      "PodDisruptionBudget checkout",
      "Role aliquot-membership",
      "RoleBinding aliquot-membership",
      "Service aliquot-fleet",
      "Service aliquot-redis",
      "StatefulSet aliquot-redis",
    ]);
  });

  it("the base is only configuration, under a name that a change does not change", () => {
    expect(rendered("k8s/base").map(named)).toEqual(["ConfigMap aliquot-config"]);
  });
});
