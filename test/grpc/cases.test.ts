/** Public bug reports of other limiters, told through Envoy's protocol. */
import { afterEach, describe, expect, it } from "vitest";
import { closeDoors, codes, descriptor, openDoor, request } from "./rate-limit-door.ts";

afterEach(closeDoors);

const TEN_AN_HOUR = `
domain: d
descriptors:
  - { key: a, rate_limit: { unit: hour, requests_per_unit: 1 }, aliquot: { burst: 10 } }
`;

describe("O3 cost that is zero or enormous", () => {
  it("(c) counts an addend that is unset or 0 as 1", async () => {
    const door = await openDoor(TEN_AN_HOUR);
    await door.ask(request("a=1"));
    await door.ask({ ...request("a=1"), hitsAddend: 0 });
    expect(codes(await door.ask({ ...request("a=1"), hitsAddend: 0 }))).toBe("OK: OK 7");
  });

  it("(d) denies the largest addend and debits nothing", async () => {
    const door = await openDoor(TEN_AN_HOUR);
    const most = { ...request("a=1"), hitsAddend: 4_294_967_295 };
    expect(codes(await door.ask(most))).toBe("OVER: OVER 10");
    const own = request(descriptor("a=1", { hitsAddend: { value: Number.MAX_SAFE_INTEGER } }));
    expect(codes(await door.ask(own))).toBe("OVER: OVER 10");
    expect(codes(await door.ask(request("a=1")))).toBe("OK: OK 9");
  });

  it("peeks with a descriptor's own addend of 0, a thousand times", async () => {
    const door = await openDoor(TEN_AN_HOUR);
    const peek = request(descriptor("a=1", { hitsAddend: { value: 0 } }));
    for (let i = 0; i < 1_000; i += 1) await door.ask({ ...peek, hitsAddend: 5 });
    expect(codes(await door.ask(request("a=1")))).toBe("OK: OK 9");
  });

  it("takes each descriptor's own addend before the request's", async () => {
    const door = await openDoor(TEN_AN_HOUR);
    const own = descriptor("a=1", { hitsAddend: { value: 3 } });
    expect(codes(await door.ask({ ...request(own, "a=2"), hitsAddend: 5 }))).toBe("OK: OK 7, OK 5");
  });
});

describe("O18 a denied request uses up none of its other limits", () => {
  const G = "{ key: g, rate_limit: { unit: minute, requests_per_unit: 10 } }";
  const S = "{ key: s, rate_limit: { unit: minute, requests_per_unit: 3 } }";
  const file = `domain: d\ndescriptors: [${G}, ${S}]`;

  it("in five calls with two limits and eight with one", async () => {
    const door = await openDoor(file);
    const both = [];
    for (let i = 0; i < 5; i += 1) both.push(codes(await door.ask(request("g=1", "s=1"))));
    expect(both).toEqual([
      "OK: OK 9, OK 2",
      "OK: OK 8, OK 1",
      "OK: OK 7, OK 0",
      "OVER: OK 7, OVER 0",
      "OVER: OK 7, OVER 0",
    ]);
    const one = [];
    for (let i = 0; i < 8; i += 1) one.push((await door.ask(request("g=1"))).overallCode);
    expect(one).toEqual([1, 1, 1, 1, 1, 1, 1, 2]);
  });

  it("unless the limits say that denied calls are charged, as the reference does", async () => {
    const door = await openDoor(file, { envoy: ", on_deny: debit" });
    for (let i = 0; i < 5; i += 1) await door.ask(request("g=1", "s=1"));
    expect(codes(await door.ask(request("g=1")))).toBe("OK: OK 4");
    const denied = await door.ask(request("s=1"));
    expect(codes(denied)).toBe("OVER: OVER 0");
    // Two calls beyond the three, and the one just now: refill has three tokens to pay back first.
    expect(denied.statuses[0]?.durationUntilReset?.seconds).toBe(60);
  });

  it("and then charges what was used after the fact, also beyond what there was", async () => {
    const door = await openDoor(`domain: d\ndescriptors: [${G}]`, { envoy: ", on_deny: debit" });
    const spent = { ...request("g=1"), hitsAddend: 15 };
    expect(codes(await door.ask(spent))).toBe("OVER: OVER 10");
    door.decider.sole.now += 30_000_000;
    expect(codes(await door.ask(request("g=1")))).toBe("OVER: OVER 0");
  });

  it("and the largest addend puts no more debt on a limit than it can carry", async () => {
    const door = await openDoor(`domain: d\ndescriptors: [${G}]`, { envoy: ", on_deny: debit" });
    for (let i = 0; i < 3; i += 1) {
      await door.ask({ ...request("g=1"), hitsAddend: 4_294_967_295 });
    }
    door.decider.sole.now += 130_000_000;
    expect((await door.ask(request("g=1"))).overallCode).toBe(1);
  });

  it("answers OK to an unknown domain and to a descriptor without a rule, counted", async () => {
    const door = await openDoor(file);
    const unknown = await door.ask({ domain: "other", descriptors: [descriptor("g=1")] });
    const unmatched = await door.ask(request("x=1", "g=1", "y=1"));
    expect(codes(unknown)).toBe("OK: OK 0");
    expect(codes(unmatched)).toBe("OK: OK 0, OK 9, OK 0");
    expect(unknown.statuses[0]?.currentLimit).toBeNull();
    expect(door.service.unmatched).toBe(3);
  });
});

describe("O24 two identities never share a bucket", () => {
  const each = (...keys: readonly string[]): string =>
    keys
      .map((key) => `  - { key: "${key}", rate_limit: { unit: hour, requests_per_unit: 3 } }\n`)
      .join("");
  const nested = `
  - key: a
    rate_limit: { unit: hour, requests_per_unit: 3 }
    descriptors:
      - { key: c, rate_limit: { unit: hour, requests_per_unit: 3 } }
  - { key: user, rate_limit: { unit: hour, requests_per_unit: 3 } }
  - { key: ip, rate_limit: { unit: hour, requests_per_unit: 3 } }
  - { key: "a:b", rate_limit: { unit: hour, requests_per_unit: 3 } }
`;

  it.each([
    ["of different kinds", "user=10.0.0.1", "ip=10.0.0.1"],
    ["with separators in keys and values", "a=b:c", "a:b=c"],
    ["with an empty value behind", "a=b c=", "a=b|c|"],
    ["with a NUL behind", "user=v", "user=v\0"],
    ["of bytes that are not UTF-8", "user=\udcff", "user=\udcfe"],
  ])("%s: %j and %j", async (_, first, second) => {
    const door = await openDoor(`domain: d\ndescriptors:${nested}`);
    for (let i = 0; i < 4; i += 1) await door.ask(request(first));
    expect(codes(await door.ask(request(first)))).toBe("OVER: OVER 0");
    expect(codes(await door.ask(request(second)))).toBe("OK: OK 2");
  });

  it.each(["*", "foo\r\nDEL canary\r\n", 'k\n{"level":"error"}'])(
    "and %j is a value like any other",
    async (value) => {
      const door = await openDoor(`domain: d\ndescriptors:\n${each("user")}`);
      const asked = { domain: "d", descriptors: [{ entries: [{ key: "user", value }] }] };
      expect(codes(await door.ask(asked))).toBe("OK: OK 2");
      expect(codes(await door.ask(request("user=other")))).toBe("OK: OK 2");
    },
  );
});
