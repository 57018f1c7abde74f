import { describe, expect, it } from "vitest";
import { createDescriptorMatcher } from "../../src/envoy/descriptor-tree.ts";
import type { DescriptorEntry, DescriptorMatch } from "../../src/ports/descriptors.ts";
import { rulesOf } from "./rules.ts";

/** `a=1 b=2` as entries. */
function entriesOf(text: string): DescriptorEntry[] {
  return text.split(" ").map((entry) => {
    const at = entry.indexOf("=");
    return { key: entry.slice(0, at), value: entry.slice(at + 1) };
  });
}

/** Finds rules of a domain `d` with these descriptors. */
function finder(descriptors: string): (text: string) => DescriptorMatch | undefined {
  const { domains } = rulesOf(`domain: d\ndescriptors:\n${descriptors}`);
  const matcher = createDescriptorMatcher(domains);
  return (text) => matcher.match("d", entriesOf(text));
}

const RATE = "rate_limit: { unit: day, requests_per_unit: 3 }";

describe("the rule for a descriptor", () => {
  const find = finder(`
  - { key: path, value: /a*, ${RATE} }
  - { key: path, value: /ab*, ${RATE} }
  - { key: path, value: "*.png", ${RATE} }
  - { key: path, value: /x*y*z, ${RATE} }
  - { key: path, value: /abc, ${RATE} }
  - { key: path, ${RATE} }
  - { key: tenant, value: one, ${RATE} }
`);

  it.each<[string, string | undefined, string]>([
    ["path=/abc", "envoy/d/path=%2Fabc", "the exact value goes first"],
    ["path=/abd", "envoy/d/path=%2Fa*", "patterns go in the order of the file"],
    ["path=/a", "envoy/d/path=%2Fa*", "a star stands for nothing, too"],
    ["path=/b.png", "envoy/d/path=*.png", "a star may come first"],
    ["path=/x1y2z", "envoy/d/path=%2Fx*y*z", "and there may be several"],
    ["path=/xz", "envoy/d/path", "whose parts must all be there"],
    ["path=/xyzy", "envoy/d/path", "with nothing behind the last"],
    ["path=", "envoy/d/path", "an empty value is a value like any other"],
    ["path=/other", "envoy/d/path", "the rule for any value goes last"],
    ["tenant=one", "envoy/d/tenant=one", "other keys are other rules"],
    ["tenant=two", undefined, "a value that nothing stands for has none"],
    ["user=x", undefined, "neither has a key that is not there"],
    ["path=/abc tenant=one", undefined, "a rule counts only at the last entry"],
  ])("%s is %s: %s", (text, name, _) => {
    expect(find(text)?.rule.name).toBe(name);
  });

  it("is none in a domain that is not configured, also for a caller's own limit", () => {
    const { domains } = rulesOf(`domain: d\ndescriptors: [{ key: path, ${RATE} }]`);
    const matcher = createDescriptorMatcher(domains);
    const entries = entriesOf("path=x");
    expect(matcher.match("other", entries)).toBeUndefined();
    expect(matcher.matchOverride("other", entries, 5, 60)).toBeUndefined();
    expect(matcher.match("d", [])).toBeUndefined();
  });
});

describe("nested rules", () => {
  const find = finder(`
  - key: plan
    value: free
    ${RATE}
    descriptors:
      - { key: user, value: admin, rate_limit: { unlimited: true } }
      - { key: user, ${RATE} }
  - key: plan
    value: fr*
    descriptors:
      - { key: ip, ${RATE} }
  - key: plan
    descriptors:
      - { key: ip, ${RATE} }
`);

  it.each([
    ["plan=free", "envoy/d/plan=free"],
    ["plan=free user=bob", "envoy/d/plan=free/user"],
    ["plan=free user=admin", "envoy/d/plan=free/user=admin"],
    ["plan=free ip=1", undefined],
    ["plan=frugal ip=1", "envoy/d/plan=fr*/ip"],
    ["plan=paid ip=1", "envoy/d/plan/ip"],
    ["plan=paid", undefined],
    ["plan=paid ip=1 user=bob", undefined],
  ])("for %s is %s, and there is no way back from a choice", (text, name) => {
    expect(find(text)?.rule.name).toBe(name);
  });
});

describe("what a descriptor is counted under", () => {
  const find = finder(`
  - { key: one, value: v, ${RATE} }
  - { key: each, ${RATE} }
  - { key: apart, value: p*, ${RATE} }
  - { key: shared, value: p*, share_threshold: true, ${RATE} }
  - key: tenant
    descriptors:
      - key: shared
        value: p*
        share_threshold: true
        descriptors: [{ key: user, ${RATE} }]
`);

  it.each([
    ["one=v", "one=v", true],
    ["each=a", "each=a", true],
    ["each=a", "each=b", false],
    ["apart=p1", "apart=p2", false],
    ["shared=p1", "shared=p2", true],
    ["tenant=a shared=p1 user=u", "tenant=a shared=p2 user=u", true],
    ["tenant=a shared=p1 user=u", "tenant=b shared=p1 user=u", false],
    ["tenant=a shared=p1 user=u", "tenant=a shared=p1 user=w", false],
    ["tenant=a shared=p1 user=1:b", "tenant=a1:1 shared=p1 user=b", false],
    ["each=v", "each=v\0", false],
    [`each=${"x".repeat(999)}a`, `each=${"x".repeat(999)}b`, false],
  ])("is for %s and %s the same: %s", (a, b, isSame) => {
    const [first, second] = [find(a), find(b)];
    expect(first?.rule).toBeDefined();
    expect(second?.rule).toBe(first?.rule);
    expect(first?.key === second?.key).toBe(isSame);
  });

  it("is short whatever the value", () => {
    expect(find(`each=${"x".repeat(50_000)}`)?.key.length).toBeLessThan(300);
  });
});

describe("a caller's own limit", () => {
  const { domains } = rulesOf("domain: d\n");
  const matcher = createDescriptorMatcher(domains);
  const limitOf = (text: string, tokens: number, seconds: number) => {
    const match = matcher.matchOverride("d", entriesOf(text), tokens, seconds);
    return match && { key: match.key, limit: match.rule.limit?.overrides.get(match.key) };
  };

  it("has the rate and burst that the caller names", () => {
    expect(limitOf("a=1", 90, 60)?.limit).toMatchObject({
      name: "envoy/d/@override",
      rate: 1.5,
      burst: 90,
    });
  });

  it("is the same for the same rate, and has a bucket per descriptor and rate", () => {
    expect(limitOf("a=1", 5, 60)).toEqual(limitOf("a=1", 5, 60));
    const keys = [
      limitOf("a=1", 5, 60),
      limitOf("a=2", 5, 60),
      limitOf("b=1", 5, 60),
      limitOf("a=1", 6, 60),
      limitOf("a=1", 5, 3_600),
      limitOf("a=1 b=", 5, 60),
      limitOf("a=1b:0: ", 5, 60),
    ].map((found) => found?.key);
    expect(new Set(keys).size).toBe(keys.length);
  });

  it("stays right when there are more rates than are kept ready", () => {
    for (let tokens = 1; tokens <= 2_500; tokens += 1) {
      expect(limitOf("a=1", tokens, 1)?.limit?.burst).toBe(tokens);
    }
    expect(limitOf("a=1", 1, 1)?.limit?.burst).toBe(1);
  });

  it("is none when it cannot be counted", () => {
    expect(limitOf("a=1", 4_294_967_295, 31_536_000)?.limit).toBeUndefined();
  });

  it("cannot be listed", () => {
    const overrides = domains[0]?.override.overrides;
    expect([...(overrides ?? [])]).toEqual([]);
    expect(overrides?.get("no rate in front")).toBeUndefined();
  });
});
