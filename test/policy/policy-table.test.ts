import { describe, expect, it } from "vitest";
import { PolicyTable } from "../../src/policy/policy-table.ts";
import { type PolicySketch, policyOf, type RequestSketch, requestOf } from "./requests.ts";

/** Names of the limits that a request is charged to, each policy's limit bearing its name. */
function charged(
  policies: readonly PolicySketch[],
  target: string,
  request: RequestSketch = {},
): readonly string[] {
  const table = new PolicyTable(policies.map(policyOf));
  return table.matching(requestOf(target, request)).map(({ limit }) => limit);
}

describe("a pattern", () => {
  it.each([
    ["/", "/", true],
    ["/", "", true],
    ["/", "/a", false],
    ["/api", "/api/", true],
    ["/api/", "/api", true],
    ["/api/*", "/api/x", true],
    ["/api/*", "/api/x?q=/y/z", true],
    ["/api/*", "/api", false],
    ["/api/*", "/api/x/y", false],
    ["/api/**", "/api", true],
    ["/api/**", "/api/x/y", true],
    ["/api/**", "/apis", false],
    ["/**/edit", "/edit", true],
    ["/**/edit", "/a/b/edit", true],
    ["/**/edit", "/a/b/edits", false],
    ["/a/**/:id/z", "/a/z", false],
    ["/a/**/:id/z", "/a/1/z", true],
    ["/a/**/:id/z", "/a/b/c/1/z", true],
    ["/caf\u00e9", "/caf%C3%A9", true],
    ["/caf\u00e9", Buffer.from("/caf\u00e9").toString("latin1"), true],
    ["/a b", "/a%20b", true],
    ["/a", "http://host:80/a?b", true],
    ["/a", "/a#b", true],
    ["/a", "/A", false],
  ])("%s and %s: %s", (path, target, matches) => {
    expect(charged([{ path: [path] }], target)).toEqual(matches ? ["p"] : []);
  });
});

describe("without a name", () => {
  const policies: readonly PolicySketch[] = [
    { name: "login", methods: ["POST"], path: ["/api/login", "/v2/login"] },
    { name: "read", methods: ["GET", "HEAD"], path: ["/api/**"] },
    { name: "rest" },
  ];

  it("the first policy counts that matches method and path", () => {
    expect(charged(policies, "/api/login", { method: "POST" })).toEqual(["login"]);
    expect(charged(policies, "/v2/login", { method: "POST" })).toEqual(["login"]);
    expect(charged(policies, "/api/login")).toEqual(["read"]);
    expect(charged(policies, "/api/x", { method: "PUT" })).toEqual(["rest"]);
    expect(charged(policies, "/")).toEqual(["rest"]);
  });

  it("a request that no policy matches is charged to none, and counted", () => {
    const table = new PolicyTable(policies.slice(0, 2).map(policyOf));
    expect(table.matching(requestOf("/x"))).toEqual([]);
    expect(table.matching(requestOf("/api"))).toHaveLength(1);
    expect(table.unmatched).toBe(1);
  });
});

describe("a path that can be read in several ways", () => {
  const strict = { name: "strict", path: ["/api/login"] };
  const files = { name: "files", path: ["/files/:name"] };
  const lax = { name: "lax", path: ["/static/**"] };
  const rest = { name: "rest" };

  it.each([
    "/api/login",
    "/api/login/",
    "/api//login",
    "//api/login",
    "/api/./login",
    "/api/x/../login",
    "/api/x/%2e%2E/login",
    "/api%2flogin",
    "/api\\login",
    "/api/%6cogin",
    "/api/login;jsessionid=1",
    "/static/..;/api/login",
    "/static/..%2fapi/login",
    "/../api/login",
  ])("%s does not slip from the policy of /api/login", (target) => {
    expect(charged([lax, strict, rest], target)).toContain("strict");
  });

  it.each(["/api/..%2f..%2fstatic/x", "/api/../static/x", "/api%2f..%2fstatic/x"])(
    "%s is charged under what it is to a server that takes it literally, too",
    (target) => {
      const api = { name: "api", path: ["/api/**", "/:one/**"] };
      expect(new Set(charged([lax, api], target))).toEqual(new Set(["api", "lax"]));
    },
  );

  it("is charged under each reading, once per limit and key", () => {
    expect(charged([files, rest], "/files/a%2Fb")).toEqual(["files", "rest"]);
    expect(charged([rest], "/files/a%2Fb/../;c")).toEqual(["rest"]);
  });

  it("gives a key for each reading that has one", () => {
    const table = new PolicyTable([policyOf({ ...files, key: ["path:name"] })]);
    const keys = (target: string) => table.named("files", requestOf(target))?.map(({ key }) => key);
    expect(keys("/files/a%2Fb")).toEqual(["a/b"]);
    expect(keys("/files/a;v=1")).toEqual(["a;v=1", "a"]);
    expect(keys("/files//a")).toEqual(["a"]);
  });
});

describe("by name", () => {
  const table = new PolicyTable([
    policyOf({ name: "lax", key: ["const:lax"] }),
    policyOf({ name: "api", methods: ["GET"], path: ["/api/:id"], key: ["path:id"] }),
  ]);

  it("a policy applies whatever it matches", () => {
    const at = (target: string, method: string) =>
      table.named("api", requestOf(target, { method }))?.map(({ key }) => key);
    expect(at("/api/7", "GET")).toEqual(["7"]);
    expect(at("/api/7", "DELETE")).toEqual(["7"]);
    expect(at("/elsewhere", "GET")).toEqual(["absent:"]);
  });

  it("there is none that is not configured", () => {
    expect(table.named("apo", requestOf("/"))).toBeUndefined();
    expect(table.named("__proto__", requestOf("/"))).toBeUndefined();
    expect(table.unmatched).toBe(0);
  });
});
