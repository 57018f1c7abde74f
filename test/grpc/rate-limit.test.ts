import { afterEach, describe, expect, it } from "vitest";
import { closeDoors, codes, descriptor, OK, openDoor, request } from "./rate-limit-door.ts";

afterEach(closeDoors);

const UINT32_MAX = 4_294_967_295;
const rule = (key: string, count: number, unit: string, more = ""): string =>
  `  - { key: ${key}, rate_limit: { unit: ${unit}, requests_per_unit: ${count} }${more} }\n`;
const rules = (...lines: readonly string[]): string => `domain: d\ndescriptors:\n${lines.join("")}`;

describe("ShouldRateLimit over a Unix socket", () => {
  it("answers with a status per descriptor, in the order of the request", async () => {
    const door = await openDoor(
      rules(rule("a", 5, "minute"), rule("b", 2, "hour"), rule("c", 1, "second")),
    );
    const first = await door.ask(request("b=1", "none=1", "a=1"));
    expect(first.overallCode).toBe(OK);
    expect(first.statuses).toMatchObject([
      {
        code: OK,
        currentLimit: { requestsPerUnit: 2, unit: 3, name: "" },
        limitRemaining: 1,
        durationUntilReset: { seconds: 1_800, nanos: 0 },
      },
      { code: OK, currentLimit: null, limitRemaining: 0, durationUntilReset: null },
      {
        code: OK,
        currentLimit: { requestsPerUnit: 5, unit: 2, name: "" },
        limitRemaining: 4,
        durationUntilReset: { seconds: 12, nanos: 0 },
      },
    ]);
  });

  it("tells who is denied when a call like it could pass", async () => {
    const door = await openDoor(rules(rule("a", 2, "minute")));
    await door.ask(request("a=1"));
    await door.ask(request("a=1"));
    const denied = await door.ask(request("a=1"));
    expect(codes(denied)).toBe("OVER: OVER 0");
    expect(denied.statuses[0]?.durationUntilReset).toMatchObject({ seconds: 30, nanos: 0 });
    door.decider.sole.now += 30_000_000;
    expect(codes(await door.ask(request("a=1")))).toBe("OK: OK 0");
  });

  it.each([
    ["second", 1],
    ["minute", 2],
    ["hour", 3],
    ["day", 4],
    ["month", 5],
    ["year", 6],
    ["week", 7],
  ])("names the unit %s by its number %d", async (unit, number) => {
    const door = await openDoor(rules(rule("a", 7, unit)));
    const { statuses } = await door.ask(request("a=1"));
    expect(statuses[0]?.currentLimit).toMatchObject({ requestsPerUnit: 7, unit: number });
  });

  it("leaves the unit unknown where the burst fills in no unit of time", async () => {
    const door = await openDoor(
      rules(
        rule("a", 60, "minute", ", aliquot: { burst: 7 }"),
        rule("b", 60, "minute", ", aliquot: { burst: 3600 }"),
      ),
    );
    const { statuses } = await door.ask(request("a=1", "b=1"));
    expect(statuses[0]?.currentLimit).toMatchObject({ requestsPerUnit: 7, unit: 0 });
    expect(statuses[1]?.currentLimit).toMatchObject({ requestsPerUnit: 3_600, unit: 3 });
  });

  it("passes an unlimited rule without a limit and with the most that can remain", async () => {
    const door = await openDoor(
      "domain: d\ndescriptors: [{ key: a, rate_limit: { unlimited: yes } }]",
    );
    const { statuses } = await door.ask(request("a=1"));
    expect(statuses[0]).toMatchObject({ currentLimit: null, limitRemaining: UINT32_MAX });
  });

  it("finds nested, exact, wildcard and default rules, and none at another depth", async () => {
    const door = await openDoor(`
domain: d
descriptors:
  - key: plan
    value: free
    descriptors:
      - { key: path, value: /a, rate_limit: { unit: day, requests_per_unit: 1 } }
      - { key: path, value: /a*, rate_limit: { unit: day, requests_per_unit: 2 } }
      - { key: path, rate_limit: { unit: day, requests_per_unit: 3 } }
`);
    const answer = await door.ask(
      request(
        "plan=free path=/a",
        "plan=free path=/ab",
        "plan=free path=/b",
        "plan=free",
        "plan=free path=/a user=x",
        "plan=paid path=/a",
      ),
    );
    expect(answer.statuses.map(({ currentLimit }) => currentLimit?.requestsPerUnit)).toEqual([
      1,
      2,
      3,
      undefined,
      undefined,
      undefined,
    ]);
    expect(door.service.unmatched).toBe(3);
  });

  it("drops the rule that another rule of the call replaces", async () => {
    const door = await openDoor(`
domain: d
descriptors:
  - { key: all, rate_limit: { name: base, unit: day, requests_per_unit: 1 } }
  - key: vip
    rate_limit: { name: vip, unit: day, requests_per_unit: 9, replaces: [{ name: base }] }
`);
    expect(codes(await door.ask(request("all=1")))).toBe("OK: OK 0");
    const { statuses } = await door.ask(request("all=1", "vip=1"));
    expect(statuses).toMatchObject([
      { code: OK, currentLimit: null },
      { code: OK, currentLimit: { requestsPerUnit: 9, name: "vip" }, limitRemaining: 8 },
    ]);
    expect(codes(await door.ask(request("all=1")))).toBe("OVER: OVER 0");
    expect(door.service.unmatched).toBe(0);
  });

  it("counts what a shadow rule would deny, and passes it", async () => {
    const door = await openDoor(rules(rule("a", 1, "day", ", shadow_mode: true")));
    await door.ask(request("a=1"));
    expect(codes(await door.ask(request("a=1")))).toBe("OK: OK 0");
    const [limit] = door.decider.sole.engine.figures(0).limits;
    expect(limit?.tally.tokens[2]).toBe(1);
  });

  it("lets values of a shared pattern spend from one bucket", async () => {
    const door = await openDoor(`
domain: d
descriptors:
  - key: a
    value: x*
    share_threshold: true
    rate_limit: { unit: day, requests_per_unit: 2 }
`);
    await door.ask(request("a=x1"));
    await door.ask(request("a=x2"));
    expect(codes(await door.ask(request("a=x3")))).toBe("OVER: OVER 0");
  });

  it("lets nothing through a rule of 0 requests, and charges nothing beside it", async () => {
    const door = await openDoor(rules(rule("a", 5, "day"), rule("blocked", 0, "day")));
    const answer = await door.ask(request("a=1", "blocked=1"));
    expect(codes(answer)).toBe("OVER: OK 5, OVER 0");
    expect(answer.statuses[1]?.currentLimit).toMatchObject({ requestsPerUnit: 0, unit: 4 });
    expect(codes(await door.ask(request("a=1")))).toBe("OK: OK 4");
  });

  it("hands on the metadata of the rules that passed", async () => {
    const door = await openDoor(`
domain: d
descriptors:
  - key: a
    rate_limit: { unit: day, requests_per_unit: 1 }
    metadata: { tier: gold, weight: 3, on: true, list: [1, x], none: null, in: { deep: "1" } }
`);
    const { dynamicMetadata } = await door.ask(request("a=1"));
    expect(dynamicMetadata?.fields).toMatchObject({
      tier: { stringValue: "gold" },
      weight: { numberValue: 3 },
      on: { boolValue: true },
      list: { listValue: { values: [{ numberValue: 1 }, { stringValue: "x" }] } },
      none: { nullValue: 0 },
      in: { structValue: { fields: { deep: { stringValue: "1" } } } },
    });
    expect((await door.ask(request("a=1"))).dynamicMetadata).toBeNull();
  });

  it("adds the rate limit headers to answers, and Retry-After to denials", async () => {
    const door = await openDoor(rules(rule("a", 1, "minute")));
    const [allowed, denied] = [await door.ask(request("a=1")), await door.ask(request("a=1"))];
    const plain = (answer: typeof allowed) =>
      answer.responseHeadersToAdd.map(({ key, value }) => [key, value]);
    expect(plain(allowed)).toEqual([
      ["ratelimit-policy", '"envoy/d/a";q=1;w=60'],
      ["ratelimit", '"envoy/d/a";r=0;t=60'],
    ]);
    expect(plain(denied)).toContainEqual(["retry-after", "60"]);
    expect((await door.ask(request("none=1"))).responseHeadersToAdd).toEqual([]);
  });

  it("adds no headers but Retry-After when there are to be none", async () => {
    const door = await openDoor(rules(rule("a", 1, "minute")), { headers: [] });
    expect((await door.ask(request("a=1"))).responseHeadersToAdd).toEqual([]);
    const { responseHeadersToAdd } = await door.ask(request("a=1"));
    expect(responseHeadersToAdd.map(({ key }) => key)).toEqual(["retry-after"]);
  });
});

describe("quota_mode", () => {
  const file = rules(
    rule("first", 2, "day", ", quota_mode: true"),
    rule("second", 4, "day", ", quota_mode: true"),
    rule("plain", 9, "day"),
  );

  it("denies only when all its rules of the call are exhausted", async () => {
    const door = await openDoor(file);
    const ask = async () => codes(await door.ask(request("first=1", "second=1", "plain=1")));
    expect(await ask()).toBe("OK: OK 1, OK 3, OK 8");
    expect(await ask()).toBe("OK: OK 0, OK 2, OK 7");
    expect(await ask()).toBe("OK: OVER 0, OK 1, OK 6");
    expect(await ask()).toBe("OK: OVER 0, OK 0, OK 5");
    expect(await ask()).toBe("OVER: OVER 0, OVER 0, OK 5");
    expect(await ask()).toBe("OVER: OVER 0, OVER 0, OK 5");
  });

  it("spends the same when the decision had to wait", async () => {
    const door = await openDoor(file);
    door.decider.hold = () => Promise.resolve();
    for (let i = 0; i < 4; i += 1) await door.ask(request("first=1", "second=1", "plain=1"));
    door.decider.hold = undefined;
    expect(codes(await door.ask(request("plain=1")))).toBe("OK: OK 4");
    expect(codes(await door.ask(request("second=1")))).toBe("OVER: OVER 0");
  });

  it("never outweighs a plain rule that denies", async () => {
    const door = await openDoor(file);
    for (let i = 0; i < 9; i += 1) await door.ask(request("plain=1"));
    expect(codes(await door.ask(request("first=1", "plain=1")))).toBe("OVER: OK 2, OVER 0");
    expect(codes(await door.ask(request("first=1")))).toBe("OK: OK 1");
  });
});

describe("a caller's own limit", () => {
  it("holds in place of the configured one, with a bucket per descriptor and rate", async () => {
    const door = await openDoor(rules(rule("a", 1, "day", ", shadow_mode: true")));
    const own = (key: string, requestsPerUnit: number, unit: number) =>
      request(descriptor(key, { limit: { requestsPerUnit, unit } }));
    const first = await door.ask(own("a=1", 2, 2));
    expect(first.statuses[0]).toMatchObject({
      code: OK,
      currentLimit: { requestsPerUnit: 2, unit: 2, name: "" },
      limitRemaining: 1,
    });
    await door.ask(own("a=1", 2, 2));
    expect(codes(await door.ask(own("a=1", 2, 2)))).toBe("OVER: OVER 0");
    expect(codes(await door.ask(own("a=2", 2, 2)))).toBe("OK: OK 1");
    expect(codes(await door.ask(own("a=1", 3, 2)))).toBe("OK: OK 2");
    expect(codes(await door.ask(request("a=1")))).toBe("OK: OK 0");
  });

  it("may be a week, and may be nothing at all", async () => {
    const door = await openDoor("domain: d\n");
    const week = await door.ask(
      request(descriptor("a=1", { limit: { requestsPerUnit: 3, unit: 7 } })),
    );
    expect(week.statuses[0]?.currentLimit).toMatchObject({ requestsPerUnit: 3, unit: 7 });
    const none = await door.ask(
      request(descriptor("a=1", { limit: { requestsPerUnit: 0, unit: 1 } })),
    );
    expect(codes(none)).toBe("OVER: OVER 0");
  });

  it("counts for nothing in a domain that is not configured", async () => {
    const door = await openDoor("domain: d\n");
    const limit = { requestsPerUnit: 0, unit: 1 };
    const answer = await door.ask({ domain: "e", descriptors: [descriptor("a=1", { limit })] });
    expect(answer.statuses).toMatchObject([{ code: OK, currentLimit: null }]);
    expect(door.service.unmatched).toBe(1);
  });
});

describe("metrics of values", () => {
  it("show the values that a rule's author asked for, a bounded number of them", async () => {
    const door = await openDoor(`
domain: d
descriptors:
  - key: tenant
    value_to_metric: true
    descriptors:
      - { key: user, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: all, detailed_metric: true, rate_limit: { unit: day, requests_per_unit: 1 } }
`);
    await door.ask(request("tenant=a user=1"));
    await door.ask(request("tenant=a user=2"));
    await door.ask(request("tenant=a user=2"));
    for (let i = 0; i < 150; i += 1) await door.ask(request(`all=${i}`));
    const shown = door.service.shown.all();
    expect(shown[0]).toEqual({
      rule: "envoy/d/tenant/user",
      descriptor: "tenant=a",
      counts: { allowed: 2, denied: 1, shadow_denied: 0 },
    });
    const all = shown.filter(({ rule: name }) => name === "envoy/d/all");
    expect(all).toHaveLength(101);
    expect(all.at(-1)).toMatchObject({ descriptor: "other", counts: { allowed: 50 } });
  });
});
