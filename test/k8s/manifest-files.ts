/** The files in k8s/, their objects, and what kubectl makes of a folder. */
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import type { KubeObject } from "./published-schemas.ts";

const FOLDER = "k8s";

const FILES = readdirSync(FOLDER, { recursive: true, encoding: "utf8" })
  .map((name) => join(FOLDER, name))
  .filter((path) => path.endsWith(".yaml"))
  .sort();

const isKustomization = (path: string): boolean => path.endsWith("/kustomization.yaml");
const isConfig = (path: string): boolean => path.endsWith("/aliquot.yaml");

/** Configurations of the sidecar. */
export const CONFIGS: readonly string[] = FILES.filter(isConfig);
export const KUSTOMIZATIONS: readonly string[] = FILES.filter(isKustomization);
/** Files of Kubernetes objects, and of patches that look like some. */
export const MANIFESTS: readonly string[] = FILES.filter(
  (path) => !(isConfig(path) || isKustomization(path)),
);

/** The objects of a YAML text. @throws {Error} When it is no YAML. */
export function objectsIn(text: string): KubeObject[] {
  return parseAllDocuments(text).map((document) => {
    const [error] = document.errors;
    if (error !== undefined) throw error;
    return document.toJS() as KubeObject;
  });
}

export function objectsOf(path: string): KubeObject[] {
  return objectsIn(readFileSync(path, "utf8"));
}

/** kubectl is no part of what the tests may ask for. */
export const HAS_KUBECTL: boolean = spawnSync("kubectl", ["version", "--client"]).status === 0;

/** What `kubectl kustomize` prints for a folder. @throws {Error} With what it complains about. */
export function rendered(folder: string): KubeObject[] {
  const run = spawnSync("kubectl", ["kustomize", folder], { encoding: "utf8" });
  if (run.status !== 0 || run.stderr !== "") throw new Error(`${folder}: ${run.stderr}`);
  return objectsIn(run.stdout);
}

/** The only object of a kind, and of a name where there are several. */
export function find<Shape = KubeObject>(
  objects: readonly KubeObject[],
  kind: string,
  name?: string,
): Shape {
  const found = objects.filter(
    (object) => object.kind === kind && (name ?? object.metadata.name) === object.metadata.name,
  );
  if (found.length !== 1) throw new Error(`${found.length} objects ${kind} ${name ?? ""}`);
  return found[0] as Shape;
}
