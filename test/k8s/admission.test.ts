/** What the admission policy makes of pods, next to what the component makes of workloads. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { evaluate } from "./admission-cel.ts";
import { find, objectsOf } from "./manifest-files.ts";
import { type KubeObject, schemaProblems } from "./published-schemas.ts";

interface Policy {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly matchConditions: readonly [{ readonly expression: string }];
    readonly variables: readonly { readonly name: string; readonly expression: string }[];
    readonly mutations: readonly [
      { readonly jsonPatch: { readonly expression: string } },
      { readonly applyConfiguration: { readonly expression: string } },
    ];
  };
}

interface PodSpec {
  readonly securityContext?: { readonly fsGroup?: number; readonly runAsUser?: number };
  readonly initContainers?: readonly { readonly name: string }[];
  readonly containers: readonly Container[];
  readonly volumes?: readonly { readonly name: string }[];
}

interface Container {
  readonly name: string;
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
}

const POLICY = find<Policy>(objectsOf("k8s/admission/policy.yaml"), "MutatingAdmissionPolicy");
const COMPONENT = (
  parse(readFileSync("k8s/component/sidecar.yaml", "utf8")) as {
    spec: { template: { spec: PodSpec } };
  }
).spec.template.spec;
const { matchConditions, mutations } = POLICY.spec;

const PLAIN: PodSpec = { containers: [{ name: "app" }] };

const asks = (spec: PodSpec): unknown =>
  evaluate(matchConditions[0].expression, { object: { spec } });

/** The pod after both mutations: the patch as RFC 6902 says, the rest merged by name. */
function mutated(spec: PodSpec): PodSpec {
  const variables = Object.fromEntries(
    POLICY.spec.variables.map(({ name, expression }) => [name, evaluate(expression, {})]),
  );
  const patch = evaluate(mutations[0].jsonPatch.expression, { object: { spec }, variables });
  const after = patched(spec, patch as readonly Operation[]);
  const { expression } = mutations[1].applyConfiguration;
  const applied = (evaluate(expression, { object: { spec: after } }) as { spec: PodSpec }).spec;
  const containers = after.containers.map((container, index) => ({
    ...container,
    volumeMounts: [
      ...(container.volumeMounts ?? []),
      ...(applied.containers[index]?.volumeMounts ?? []),
    ],
  }));
  const securityContext = { ...after.securityContext, ...applied.securityContext };
  return { ...after, containers, securityContext };
}

interface Operation {
  readonly op: string;
  readonly path: string;
  readonly value: unknown;
}

function patched(spec: PodSpec, operations: readonly Operation[]): PodSpec {
  const copy = structuredClone(spec) as unknown as Record<string, unknown>;
  for (const { op, path, value } of operations) {
    const [, root, list = "", index] = path.split("/");
    if (op !== "add" || root !== "spec") throw new Error(`${op} ${path}`);
    if (index === undefined) copy[list] = value;
    else {
      const items = copy[list];
      if (!Array.isArray(items)) throw new Error(`${path}: there is no list`);
      items.splice(index === "-" ? items.length : Number(index), 0, value);
    }
  }
  return copy as unknown as PodSpec;
}

describe("a pod that the admission policy lets through", () => {
  it("has the sidecar and the volumes of the component", () => {
    const pod = mutated(PLAIN);
    expect(pod.initContainers).toEqual(COMPONENT.initContainers);
    expect(pod.volumes).toEqual(COMPONENT.volumes);
    expect(pod.securityContext).toEqual(COMPONENT.securityContext);
  });

  it("mounts the socket into every container of the app", () => {
    const mount = { name: "data", mountPath: "/data" };
    const { containers } = mutated({
      containers: [{ name: "app", volumeMounts: [mount] }, { name: "helper" }],
    });
    const socket = { name: "aliquot-run", mountPath: "/run/aliquot" };
    expect(containers.map(({ volumeMounts }) => volumeMounts)).toEqual([[mount, socket], [socket]]);
  });

  it("keeps what it had, behind the sidecar", () => {
    const { initContainers, volumes } = mutated({
      ...PLAIN,
      initContainers: [{ name: "migrate" }],
      volumes: [{ name: "data" }],
    });
    expect(initContainers?.map(({ name }) => name)).toEqual(["aliquot", "migrate"]);
    expect(volumes?.map(({ name }) => name)).toEqual([
      "data",
      ...(COMPONENT.volumes ?? []).map(({ name }) => name),
    ]);
  });

  it("keeps a group of its own", () => {
    expect(mutated({ ...PLAIN, securityContext: { fsGroup: 2000 } }).securityContext).toEqual({
      fsGroup: 2000,
    });
    expect(mutated({ ...PLAIN, securityContext: { runAsUser: 1000 } }).securityContext).toEqual({
      runAsUser: 1000,
      fsGroup: 65_532,
    });
  });

  it("is what the published schemas want", async () => {
    const metadata = { name: "app" };
    const pod = { apiVersion: "v1", kind: "Pod", metadata, spec: mutated(PLAIN) };
    expect(await schemaProblems(pod as KubeObject)).toEqual([]);
  });

  it("is asked for once", () => {
    expect(asks(PLAIN)).toBe(true);
    expect(asks({ ...PLAIN, initContainers: [{ name: "migrate" }] })).toBe(true);
    expect(asks(mutated(PLAIN))).toBe(false);
  });

  it("comes from the policy that the binding names", () => {
    const [binding] = objectsOf("k8s/admission/binding.yaml");
    expect(binding).toMatchObject({ spec: { policyName: POLICY.metadata.name } });
  });
});

describe("the expressions", () => {
  it.each([
    ["a type of another field", "Object{spec: Object.wrong{}}", "type mismatch"],
    ["values of several types", '{"a": 1, "b": "c"}', "several types"],
    ["a field that is not there", "object.spec.volumes", "no such key"],
    ["half an expression", "[1, 2", "expected"],
    ["a letter that is not CEL", "1 ; 2", "cannot read"],
  ])("would not get away with %s", (_what, text, says) => {
    expect(() => evaluate(text, { object: { spec: {} } })).toThrow(says);
  });
});
