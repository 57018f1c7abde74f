import { describe, expect, it } from "vitest";
import { keyFor } from "./requests.ts";

const withHeader = (value: string | readonly string[]) => ({ headers: { "x-user": value } });
const byUser = (value: string): string | undefined =>
  keyFor(["header:x-user"], "/", withHeader(value));

describe("a key of one source", () => {
  it("is the text itself, as a caller of /v1/check would send it", () => {
    expect(byUser("alice")).toBe("alice");
    expect(keyFor(["const:all"])).toBe("all");
    expect(keyFor(["query:user"], "/x?a=1&user=al%69ce")).toBe("alice");
    expect(keyFor(["cookie:session"], "/", { headers: { cookie: "a=b; session=s1" } })).toBe("s1");
    expect(keyFor(["path:id"], "/users/42", {}, { path: ["/users/:id"] })).toBe("42");
  });

  it("is UTF-8 where the bytes are, and the bytes in hex where they are not", () => {
    expect(byUser(Buffer.from("zoë").toString("latin1"))).toBe("zoë");
    expect(byUser("zo\xeb")).toBe("bytes:7a6feb");
    expect(keyFor(["query:u"], "/?u=%ff")).toBe("bytes:ff");
    expect(keyFor(["query:zoë"], "/?zo%C3%AB=1")).toBe("1");
  });

  it.each([
    ["header:x-user", "/"],
    ["path:id", "/other"],
    ["query:user", "/?use=1"],
    ["cookie:session", "/"],
    ["client-address", "/"],
  ])("is absent when the request has no %s", (source, target) => {
    expect(keyFor([source], target, {}, { path: ["/users/:id"] })).toBe("absent:");
  });

  it("tells what is empty from what is absent", () => {
    expect(byUser("")).toBe("text:");
    expect(keyFor(["query:u"], "/?u")).toBe("text:");
    expect(keyFor(["query:u"], "/?u=")).toBe("text:");
  });

  it("is one and the same for all who send the part twice with different values", () => {
    expect(keyFor(["header:x-user"], "/", withHeader(["a", "b"]))).toBe("repeated:");
    expect(keyFor(["query:u"], "/?u=a&%75=b")).toBe("repeated:");
    expect(keyFor(["cookie:s"], "/", { headers: { cookie: ["s=a", "s=b"] } })).toBe("repeated:");
    expect(keyFor(["header:x-user"], "/", withHeader(["a", "a"]))).toBe("a");
  });

  it("takes two spellings of a cookie for one", () => {
    const key = (cookie: string) => keyFor(["cookie:s"], "/", { headers: { cookie } });
    expect([key("s=ab"), key('s="ab"'), key(" s = %61b ;t=1")]).toEqual(["ab", "ab", "ab"]);
  });

  it("is a digest when it would be longer than 256 bytes", () => {
    expect(byUser("x".repeat(256))).toBe("x".repeat(256));
    expect(byUser("x".repeat(257))).toMatch(/^digest:[0-9a-f]{64}$/);
    const wide = Buffer.from("ë".repeat(128)).toString("latin1");
    expect(byUser(wide)).toHaveLength(128);
    expect(byUser(`${wide}x`)).toMatch(/^digest:/);
    expect(byUser("x".repeat(257))).not.toBe(byUser("x".repeat(258)));
  });
});

describe("O24 two different identities", () => {
  const address = (forwarded: string) =>
    keyFor(
      ["client-address"],
      "/",
      { headers: { "x-forwarded-for": forwarded } },
      { trustedHops: 1 },
    );

  it("do not meet when one is a text and the other an address", () => {
    expect(address("10.0.0.1")).toBe("address:10.0.0.1");
    expect(byUser("10.0.0.1")).not.toBe(address("10.0.0.1"));
    expect(byUser("address:10.0.0.1")).not.toBe(address("10.0.0.1"));
  });

  it.each(["absent:", "repeated:", "text:", "list:1:a", "bytes:ff", "digest:00", "address:::/64"])(
    "do not meet when a client sends %j, which looks like a marked form",
    (text) => {
      expect(byUser(text)).toBe(`text:${text}`);
      expect(byUser(`text:${text}`)).toBe(`text:text:${text}`);
    },
  );

  it("do not meet when parts are joined", () => {
    const pair = (a: string, b: string) =>
      keyFor(["header:a", "header:b"], "/", { headers: { a, b } });
    expect(pair("a", "b:c")).not.toBe(pair("a:b", "c"));
    expect(pair("a", "b|c|")).not.toBe(pair("a|b", "c|"));
    expect(pair("a,1:b", "c")).not.toBe(pair("a", "1:b,c"));
    expect(pair("", "")).not.toBe(keyFor(["header:a", "header:b"]));
    expect(pair("v", "w")).not.toBe(pair("v\0", "w"));
    expect(keyFor(["header:a", "header:b"], "/", { headers: { a: "x" } })).toBe("list:1:x,-");
    expect(keyFor(["header:b", "header:a"], "/", { headers: { a: "x" } })).toBe("list:-,1:x");
  });

  it("do not meet when they differ by a NUL byte", () => {
    expect(keyFor(["query:u"], "/?u=v%00")).toBe("v\0");
    expect(keyFor(["query:u"], "/?u=v")).toBe("v");
  });
});
