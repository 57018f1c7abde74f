/** That the published schemas find what is wrong, and what is only unknown. */
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { type KubeObject, schemaProblems } from "./published-schemas.ts";

const pod = (spec: string): KubeObject =>
  parse(`{ apiVersion: v1, kind: Pod, metadata: { name: a }, spec: ${spec} }`) as KubeObject;
const container = (fields: string): KubeObject => pod(`{ containers: [{ name: a, ${fields} }] }`);

describe("the published schemas", () => {
  it("take an object that is right, with maps of any names", async () => {
    const object = container("image: a, resources: { limits: { cpu: 1, example.com/gpu: 2 } }");
    expect(await schemaProblems(object)).toEqual([]);
  });

  it.each([
    ["a field that no schema knows", "imge: a", "unknown field /spec/containers/0/imge"],
    [
      "one that is unknown deep inside",
      "startupProbe: { httpGet: { path: /, port: 1, prot: 2 } }",
      "unknown field /spec/containers/0/startupProbe/httpGet/prot",
    ],
    ["a wrong type", "command: aliquot", "data/spec/containers/0/command must be array"],
    [
      "a required field that is missing",
      "startupProbe: { httpGet: { path: / } }",
      "must have required property port",
    ],
    ["a value outside a list", "imagePullPolicy: Sometimes", "must be equal to one of"],
  ])("find %s", async (_what, fields, says) => {
    expect((await schemaProblems(container(fields))).join("\n")).toContain(says);
  });

  it("tell of a kind that they do not have", async () => {
    const object = { apiVersion: "v1", kind: "Sidecar", metadata: { name: "a" } };
    expect(await schemaProblems(object)).toEqual(["no schema for v1 Sidecar"]);
  });
});
