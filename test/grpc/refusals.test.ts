import { status } from "@grpc/grpc-js";
import { afterEach, describe, expect, it } from "vitest";
import { closeDoors, codes, descriptor, OVER_LIMIT, openDoor, request } from "./rate-limit-door.ts";

afterEach(closeDoors);

const UINT32_MAX = 4_294_967_295;
const rule = (key: string, count: number, unit: string, more = ""): string =>
  `  - { key: ${key}, rate_limit: { unit: ${unit}, requests_per_unit: ${count} }${more} }\n`;
const rules = (...lines: readonly string[]): string => `domain: d\ndescriptors:\n${lines.join("")}`;

describe("requests that are refused", () => {
  it.each([
    ["an empty domain", { domain: "", descriptors: [descriptor("a=1")] }, "domain"],
    ["no descriptors", { domain: "d", descriptors: [] }, "descriptors"],
    ["more descriptors than are decided together", request(...Array(17).fill("a=1")), "16"],
    [
      "an override without a unit",
      request(descriptor("a=1", { limit: { requestsPerUnit: 1, unit: 0 } })),
      "unit",
    ],
    [
      "an override that cannot be counted",
      request(descriptor("a=1", { limit: { requestsPerUnit: UINT32_MAX, unit: 6 } })),
      "exactly",
    ],
  ])("are INVALID_ARGUMENT for %s, and spend nothing", async (_, asked, word) => {
    const door = await openDoor(rules(rule("a", 5, "day")));
    const error = await door.refusal(asked);
    expect(error.code).toBe(status.INVALID_ARGUMENT);
    expect(error.details).toContain(word);
    expect(door.decider.decided + door.decider.reported).toBe(0);
    expect(codes(await door.ask(request("a=1")))).toBe("OK: OK 4");
  });

  it("are UNAVAILABLE when a limit must ask its store and cannot", async () => {
    const door = await openDoor(rules(rule("a", 5, "day"), rule("b", 1, "day")));
    door.decider.alter = (decision) =>
      decision.limit.name === "envoy/d/a"
        ? { ...decision, allowed: false, reason: "store_unavailable", remaining: 0 }
        : decision;
    const error = await door.refusal(request("a=1"));
    expect(error.code).toBe(status.UNAVAILABLE);
    expect(error.details).toContain("envoy/d/a");
  });

  it("are denied, and charged for nothing, while a store that must be asked is only late", async () => {
    const door = await openDoor(rules(rule("a", 5, "day")), { envoy: ", on_deny: debit" });
    door.decider.alter = (decision) => ({ ...decision, allowed: false, reason: "store_timeout" });
    // Envoy lets calls pass that end UNAVAILABLE, unless it is told otherwise.
    expect((await door.ask(request("a=1"))).overallCode).toBe(OVER_LIMIT);
    expect(door.decider.reported).toBe(0);
    door.decider.alter = (decision) => ({ ...decision, allowed: false, reason: "limit_exceeded" });
    expect((await door.ask(request("a=1"))).overallCode).toBe(OVER_LIMIT);
    expect(door.decider.reported).toBe(1);
  });

  it("are denied all the same when another limit says no for certain", async () => {
    const door = await openDoor(rules(rule("a", 5, "day"), rule("b", 1, "day")));
    await door.ask(request("b=1"));
    door.decider.alter = (decision) =>
      decision.limit.name === "envoy/d/a"
        ? { ...decision, allowed: false, reason: "store_unavailable", remaining: 0 }
        : decision;
    expect((await door.ask(request("a=1", "b=1"))).overallCode).toBe(OVER_LIMIT);
  });

  it("are UNAVAILABLE, never UNKNOWN, when the sidecar has a fault of its own", async () => {
    const door = await openDoor(rules(rule("a", 5, "day")));
    door.decider.alter = () => {
      throw new Error("a bug");
    };
    expect((await door.refusal(request("a=1"))).code).toBe(status.UNAVAILABLE);
    door.decider.hold = () => Promise.reject(new Error("a later bug"));
    door.decider.alter = undefined;
    const error = await door.refusal(request("a=1"));
    expect(error.code).toBe(status.UNAVAILABLE);
    expect(error.details).not.toContain("bug");
    expect(door.faults).toHaveLength(2);
  });
});

describe("a limit that a reload removes while a call waits", () => {
  it("is charged for nothing, and no fault of the sidecar", async () => {
    const door = await openDoor(rules(rule("a", 1, "day"), rule("b", 1, "day")), {
      envoy: ", on_deny: debit",
    });
    await door.ask(request("a=1"));
    door.decider.hold = () => {
      door.decider.removed.add("envoy/d/a").add("envoy/d/b");
      return Promise.resolve();
    };
    expect(codes(await door.ask(request("a=1", "b=1")))).toBe("OVER: OVER 0, OK 1");
    expect(door.decider.reported).toBe(0);
    expect(door.faults).toEqual([]);
  });
});
