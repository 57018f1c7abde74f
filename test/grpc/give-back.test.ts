import { afterEach, describe, expect, it } from "vitest";
import { closeDoors, codes, descriptor, openDoor, request } from "./rate-limit-door.ts";

afterEach(closeDoors);

const RULES = `domain: d
descriptors:
  - { key: a, rate_limit: { unit: day, requests_per_unit: 9 } }
  - { key: b, rate_limit: { unit: day, requests_per_unit: 2 } }
  - { key: none, rate_limit: { unit: day, requests_per_unit: 0 } }
  - { key: free, rate_limit: { unlimited: true } }
  - key: new
    rate_limit: { unit: day, requests_per_unit: 5, replaces: [{ name: old }] }
  - key: old
    rate_limit: { name: old, unit: day, requests_per_unit: 5 }
`;

const spent = (text: string, value: number) => descriptor(text, { hitsAddend: { value } });
const givenBack = (text: string, value?: number) =>
  descriptor(text, {
    isNegativeHits: true,
    ...(value !== undefined && { hitsAddend: { value } }),
  });

describe("a descriptor with is_negative_hits", () => {
  it("gives its cost back", async () => {
    const door = await openDoor(RULES);
    expect(codes(await door.ask(request(spent("a=1", 7))))).toBe("OK: OK 2");
    expect(codes(await door.ask(request(givenBack("a=1", 3))))).toBe("OK: OK 5");
    expect(codes(await door.ask(request(spent("a=1", 5))))).toBe("OK: OK 0");
  });

  it("gives the request's cost back when it has none of its own, which is 1 when unset", async () => {
    const door = await openDoor(RULES);
    await door.ask(request(spent("a=1", 7)));
    expect(codes(await door.ask({ ...request(givenBack("a=1")), hitsAddend: 4 }))).toBe("OK: OK 6");
    expect(codes(await door.ask(request(givenBack("a=1"))))).toBe("OK: OK 7");
  });

  it("never fills a bucket above its burst, however much is given back", async () => {
    const door = await openDoor(RULES);
    await door.ask(request(spent("a=1", 1)));
    const most = givenBack("a=1", Number.MAX_SAFE_INTEGER);
    expect(codes(await door.ask(request(most)))).toBe("OK: OK 9");
    expect(codes(await door.ask(request(spent("a=1", 9))))).toBe("OK: OK 0");
    expect(codes(await door.ask(request("a=1")))).toBe("OVER: OVER 0");
  });

  it("asks without spending when it is 0", async () => {
    const door = await openDoor(RULES);
    await door.ask(request(spent("a=1", 7)));
    expect(codes(await door.ask(request(givenBack("a=1", 0))))).toBe("OK: OK 2");
  });

  it("is taken although another descriptor of the call is denied, and does not deny", async () => {
    const door = await openDoor(RULES);
    await door.ask(request(spent("a=1", 7), spent("b=1", 2)));
    const both = request("b=1", givenBack("a=1", 3));
    expect(codes(await door.ask(both))).toBe("OVER: OVER 0, OK 5");
    expect(codes(await door.ask(request(givenBack("b=1", 1))))).toBe("OK: OK 1");
  });

  it("has nothing to give where nothing is counted", async () => {
    const door = await openDoor(RULES);
    await door.ask(request(spent("old=1", 4)));
    expect(codes(await door.ask(request(givenBack("free=1", 3))))).toBe("OK: OK 4294967295");
    expect(codes(await door.ask(request(givenBack("none=1", 3))))).toBe("OVER: OVER 0");
    // A rule that another one replaces is as if it were not there.
    expect(codes(await door.ask(request("new=1", givenBack("old=1", 3))))).toBe("OK: OK 4, OK 0");
    expect(codes(await door.ask(request("old=1")))).toBe("OK: OK 0");
  });

  it("gives nothing back in a request that is refused", async () => {
    const door = await openDoor(RULES);
    await door.ask(request(spent("a=1", 7)));
    const bad = descriptor("a=2", { limit: { requestsPerUnit: 1, unit: 0 } });
    await door.refusal(request(givenBack("a=1", 3), bad));
    expect(door.decider.reported).toBe(0);
    expect(codes(await door.ask(request(spent("a=1", 2))))).toBe("OK: OK 0");
  });
});
