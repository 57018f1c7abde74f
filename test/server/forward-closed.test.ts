/** Forward with deciders that a whole engine would take long to bring about. */
import { describe, expect, it, onTestFinished } from "vitest";
import { PolicyTable } from "../../src/policy/policy-table.ts";
import { policyOf } from "../policy/requests.ts";
import { ExactDecider, HOUR_US, limitOf } from "./exact-decider.ts";
import { type Served, serve } from "./http-client.ts";

async function open(decider: ExactDecider): Promise<Served> {
  const table = new PolicyTable([policyOf({ name: "p", limit: "pay" })]);
  const served = await serve(decider, { forward: { policies: table, observeUs: () => {} } });
  onTestFinished(() => served.stop());
  return served;
}

describe("a limit that is closed while the store is away", () => {
  it("is 503, whatever status denials have: the proxy has a rule for faults", async () => {
    const decider = new ExactDecider([limitOf("pay")]);
    decider.closed.add("pay");
    const { client } = await open(decider);
    const headers = { "x-ratelimit-deny-status": "403" };
    const answer = await client.send("GET", "/v1/forward/@p", undefined, headers);
    expect(answer.status).toBe(503);
    expect(answer.json).toMatchObject({
      type: "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
      "violated-policies": ["pay"],
    });
    expect(answer.headers["retry-after"]).toBe("1");
  });
});

describe("a forwarded request that waits for the store", () => {
  it("is answered when it is decided", async () => {
    const decider = new ExactDecider([limitOf("pay", { tokens: 1, spanUs: HOUR_US, burst: 1 })]);
    let release: (() => void) | undefined;
    decider.hold = () =>
      new Promise((resolve) => {
        release = resolve;
      });
    const { client } = await open(decider);
    const asked = client.get("/v1/forward/@p");
    await expect.poll(() => release).toBeDefined();
    release?.();
    expect((await asked).status).toBe(200);
  });

  it("is answered with 500 when deciding it failed, and the fault is told", async () => {
    const decider = new ExactDecider([limitOf("pay")]);
    decider.hold = () => Promise.reject(new Error("broken"));
    const { client, faults } = await open(decider);
    expect((await client.get("/v1/forward/@p")).status).toBe(500);
    expect(faults).toHaveLength(1);
  });
});

describe("a listener without policies", () => {
  it("does not have /v1/forward", async () => {
    const served = await serve(new ExactDecider([limitOf("pay")]));
    onTestFinished(() => served.stop());
    expect((await served.client.get("/v1/forward/@p")).status).toBe(404);
  });
});
