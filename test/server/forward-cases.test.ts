/** Faults of other limiters, held against `/v1/forward`. */
import { describe, expect, it } from "vitest";
import { openDoor, remaining } from "./forward-door.ts";

const HOURLY = "limits: [{ name: hourly, rate: 1/h, burst: 3 }]";

describe("O18 a forwarded request that is denied", () => {
  it("spends nothing in its other limits", async () => {
    const door = await openDoor(
      "limits: [{ name: wide, rate: 10/m, burst: 10 }, { name: narrow, rate: 3/m, burst: 3 }]",
      "policies:",
      "  - name: both",
      "    checks: [{ limit: wide, key: const:k }, { limit: narrow, key: const:k }]",
      "  - { name: wide, checks: [{ limit: wide, key: const:k }] }",
    );
    expect(await door.statuses(5, "/v1/forward/@both")).toEqual([200, 200, 200, 429, 429]);
    const denied = await door.ask("/v1/forward/@both");
    expect(denied.json).toMatchObject({ "violated-policies": ["narrow"] });
    expect(await door.statuses(8, "/v1/forward/@wide")).toEqual([...Array(7).fill(200), 429]);
  });
});

describe("O24 two identities through forward", () => {
  const POLICIES = [
    HOURLY,
    "forward: { trusted_hops: 1 }",
    "policies:",
    "  - { name: user, checks: [{ limit: hourly, key: header:x-user }] }",
    "  - { name: ip, checks: [{ limit: hourly, key: client-address }] }",
    "  - { name: pair, checks: [{ limit: hourly, key: [header:x-a, header:x-b] }] }",
    "  - { name: query, checks: [{ limit: hourly, key: query:v }] }",
  ];

  it.each([
    ["@user", { "x-user": "10.0.0.1" }, "@ip", { "x-forwarded-for": "10.0.0.1" }],
    ["@pair", { "x-a": "a", "x-b": "b:c" }, "@pair", { "x-a": "a:b", "x-b": "c" }],
    ["@pair", { "x-a": "b", "x-b": "" }, "@pair", { "x-a": "b|c|" }],
    ["@query/?v=v", {}, "@query/?v=v%00", {}],
    ["@query/?v=foo", {}, "@query/?v=foo%0D%0ADEL%20canary%0D%0A", {}],
    ["@user", { "x-user": "*" }, "@user", { "x-user": "**" }],
  ])("%s %j and %s %j do not share a bucket", async (a, headersA, b, headersB) => {
    const door = await openDoor(...POLICIES);
    expect(await door.statuses(4, `/v1/forward/${a}`, headersA)).toEqual([200, 200, 200, 429]);
    expect(remaining(await door.ask(`/v1/forward/${b}`, headersB))).toBe(2);
  });
});

describe("O25 the client address through forward", () => {
  const openWith = (forward: string) =>
    openDoor(
      "limits: [{ name: hourly, rate: 1/h, burst: 5 }]",
      `forward: ${forward}`,
      "policies: [{ name: ip, checks: [{ limit: hourly, key: client-address }] }]",
    );

  it("(a) a new port for each connection gets no new bucket", async () => {
    const door = await openWith("{ trusted_hops: 1 }");
    let allowed = 0;
    for (let port = 51_000; port < 51_100; port += 1) {
      const headers = { "x-forwarded-for": `203.0.113.7:${port}` };
      if ((await door.ask("/v1/forward/@ip", headers)).status === 200) allowed += 1;
    }
    expect(allowed).toBe(5);
  });

  it("(b) brackets and port of IPv6 make no difference", async () => {
    const door = await openWith("{ trusted_hops: 1 }");
    const at = (address: string) => door.ask("/v1/forward/@ip", { "x-forwarded-for": address });
    expect(remaining(await at("[2001:db8::1]:443"))).toBe(4);
    expect(remaining(await at("2001:db8::1"))).toBe(3);
  });

  it("(c) a hundred forwarded values of an untrusted peer share its bucket", async () => {
    const door = await openWith("{ trusted_hops: 0 }");
    let allowed = 0;
    for (let i = 0; i < 100; i += 1) {
      const headers = { "x-forwarded-for": `198.51.100.${i}` };
      if ((await door.ask("/v1/forward/@ip", headers)).status === 200) allowed += 1;
    }
    expect(allowed).toBe(5);
    expect(door.sole.check(door.limit, 1, "address:127.0.0.1").allowed).toBe(false);
  });

  it("(d) what the client wrote before the trusted hop does not count", async () => {
    const door = await openWith("{ trusted_hops: 1 }");
    await door.ask("/v1/forward/@ip", { "x-forwarded-for": "198.51.100.1, 203.0.113.7" });
    expect(door.sole.check(door.limit, 1, "address:203.0.113.7").remaining).toBe(3);
  });
});
