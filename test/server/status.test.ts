/** What `/status` tells of limits, of keys, and of the last five minutes. */
import { beforeEach, describe, expect, it } from "vitest";
import type { Decision } from "../../src/core/decision.ts";
import { type LimitFigures, Tally } from "../../src/core/tally.ts";
import { KeyNames, keyDigest } from "../../src/store/redis/keys.ts";
import { limitOf } from "./exact-decider.ts";
import type { HttpClient } from "./http-client.ts";
import { OpsDoor } from "./ops-door.ts";

let client: HttpClient;
let door: OpsDoor;

beforeEach(async () => {
  door = new OpsDoor();
  client = await door.open();
});

describe("/status of limits and keys", () => {
  const checks = [{ limit: limitOf("api"), key: "alice", cost: 1 }];
  const denied = [{ allowed: false, wouldDeny: false }] as unknown as readonly Decision[];

  it("tells how each limit is kept, and its present rates", async () => {
    door.count("denied");
    door.passSecond();
    expect((await client.get("/status")).json).toMatchObject({
      store: { kind: "redis", up: true, tier: "connected" },
      listing: { pods: 5, up: false },
      per_second: { denied: 1, shadow_denied: 0 },
      limits: [
        {
          name: "api",
          rate_per_second: 5,
          burst: 50,
          mode: "hybrid",
          mode_reason: "a test",
          over_admission_bound: 42,
          fallback: "local",
          shadow: false,
          per_second: { denied: 1, shadow_denied: 0 },
        },
      ],
    });
  });

  it("names keys by the digests of their names in Redis, unless keys may be shown", async () => {
    door.observed.keys.note(checks, denied);
    const digest = keyDigest("api", "alice");
    expect(new KeyNames("f", 1).state("api", "alice").endsWith(`:api:${digest}`)).toBe(true);
    const hidden = await client.get("/status");
    expect(hidden.text).not.toContain("alice");
    const ranked = [{ limit: "api", digest, per_second: 1 }];
    const keys = { shown: false, sampled_every: 1, busiest: ranked, most_denied: ranked };
    expect(hidden.json).toMatchObject({ keys });
    door.areKeysShown = true;
    const shown = [{ limit: "api", key: "alice", per_second: 1 }];
    expect((await client.get("/status")).json).toMatchObject({
      keys: { shown: true, busiest: shown, most_denied: shown },
    });
  });

  it.each([
    [{ storeUp: true, fallbackActive: false }, "connected"],
    [{ storeUp: false, fallbackActive: false }, "doubtful"],
    [{ storeUp: false, fallbackActive: true }, "isolated"],
  ])("tells by %j the tier %s", async (given, tier) => {
    door.figures = { ...door.figures, ...given };
    expect((await client.get("/status")).json).toMatchObject({ store: { tier } });
  });
});

describe("/status?history", () => {
  function second(allowed: number): void {
    door.count("allowed", 1, allowed);
    door.passSecond();
  }

  it("adds the last seconds, of all limits or of one, from where the caller is", async () => {
    second(0);
    second(3);
    second(7);
    expect((await client.get("/status")).json).not.toHaveProperty("history");
    const whole = await client.get("/status?history");
    expect(whole.json).toMatchObject({
      history: { first: 1, last: 3, denied: [0, 0, 0], p99_ms: [null, null, null] },
      outlines: { api: { denied: Array.from({ length: 60 }, () => 0) } },
    });
    const rest = await client.get("/status?history=2&limit=api");
    expect(rest.json).toMatchObject({ history: { first: 3, last: 3, limit: "api", allowed: [7] } });
    const nothing = await client.get("/status?history=3");
    expect(nothing.json).toMatchObject({ history: { first: 4, last: 3, allowed: [], tier: [] } });
  });

  it("looks at every key once a second at most, however many ask", async () => {
    second(0);
    for (let i = 0; i < 5; i += 1) await client.get("/status?history");
    expect(door.scans).toBe(1);
    second(0);
    await client.get("/status?history");
    expect(door.scans).toBe(2);
    // A reload brought other limits: nothing old is shown for them.
    const [first] = door.figures.limits;
    door.figures = { ...door.figures, limits: [{ ...first, tally: new Tally() } as LimitFigures] };
    await client.get("/status?history");
    expect(door.scans).toBe(3);
    await client.get("/status");
    expect(door.scans).toBe(4);
  });

  it.each([
    ["history=-1", 400, "history must be the last second that is known"],
    ["history=1e9", 400, "history must be the last second that is known"],
    ["history&limit=apj", 404, 'the closest one is \\"api\\"'],
    ["history=%ff", 400, "not percent-encoded UTF-8"],
  ])("refuses ?%s with %i", async (query, expected, sentence) => {
    const { status, text } = await client.get(`/status?${query}`);
    expect(status).toBe(expected);
    expect(text).toContain(sentence);
  });
});
