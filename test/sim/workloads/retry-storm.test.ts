/** Clients that try again: what they do after a denial, and what that does to a limit. */
import { describe, expect, test } from "vitest";
import { TOKEN_BUCKET } from "../../../sim/baselines/token-bucket.ts";
import { Prng } from "../../../sim/prng.ts";
import { limitOf, SECOND, scenarioOf } from "../../../sim/scenarios/scenario-of.ts";
import { ALLOWED } from "../../../sim/scheme.ts";
import type { Arrival } from "../../../sim/workload.ts";
import { type Backoff, type RetryStorm, retryStorm } from "../../../sim/workloads/retry-storm.ts";
import { runScenario } from "../../../sim/world.ts";

const STORM: RetryStorm = { clients: 50, thinkUs: SECOND, backoff: "none", attemptsMax: 3 };

function start(given: Partial<RetryStorm>) {
  const limits = [limitOf({})];
  const setup = { random: new Prng(1), limits, durationUs: 10 * SECOND, pods: 4 };
  return retryStorm({ ...STORM, ...given }).start(setup);
}

const denied = (retryAfterUs: number) => ({ allowed: false, retryAfterUs });

test("every client begins once, in order of time, under its own number", () => {
  const run = start({});
  const first: Arrival[] = [];
  for (let next = run.next(); next !== undefined; next = run.next()) first.push(next);
  expect(first).toHaveLength(50);
  expect(new Set(first.map(({ client }) => client)).size).toBe(50);
  expect(first.every(({ atUs }, i) => i === 0 || atUs >= (first[i - 1]?.atUs ?? 0))).toBe(true);
});

describe("the wait after a denial that says 1.2 s, so 2 s in the header", () => {
  const waitOf = (backoff: Backoff, attempt = 1): number => {
    const run = start({ backoff, attemptsMax: 10, waitUs: 50_000 });
    let arrival = run.next() as Arrival;
    let at = arrival.atUs;
    for (let i = 0; i < attempt; i += 1) {
      at = arrival.atUs;
      arrival = run.answered?.(at, arrival, denied(1_200_000)) as Arrival;
    }
    return arrival.atUs - at;
  };

  test("none: a fixed short wait", () => expect(waitOf("none")).toBe(50_000));

  test("exponential: below a cap that doubles", () => {
    expect(waitOf("exponential", 1)).toBeLessThanOrEqual(100_000);
    expect(waitOf("exponential", 4)).toBeLessThanOrEqual(800_000);
  });

  test("retry-after: as the header says", () => expect(waitOf("retry-after")).toBe(2 * SECOND));

  test("retry-after-jitter: then, or up to as long again later", () => {
    expect(waitOf("retry-after-jitter")).toBeGreaterThan(2 * SECOND);
    expect(waitOf("retry-after-jitter")).toBeLessThanOrEqual(4 * SECOND);
  });

  test("a request that can never pass does not make a client wait for ever", () => {
    const run = start({ backoff: "retry-after" });
    const arrival = run.next() as Arrival;
    const next = run.answered?.(0, arrival, denied(Number.POSITIVE_INFINITY));
    expect(next?.atUs).toBe(10 * SECOND);
  });
});

test("a task is given up after the last attempt, and a success ends it at once", () => {
  const run = start({ attemptsMax: 2, thinkUs: 1_000 * SECOND });
  const arrival = run.next() as Arrival;
  const second = run.answered?.(0, arrival, denied(0)) as Arrival;
  expect(second.atUs).toBe(50_000);
  expect(run.answered?.(50_000, second, denied(0))?.atUs).toBeGreaterThan(SECOND);
  expect(run.answered?.(0, arrival, ALLOWED)?.atUs).toBeGreaterThan(SECOND);
});

test("clients that honour Retry-After ask far less often than clients that do not", async () => {
  const requests = async (backoff: Backoff): Promise<number> => {
    const scenario = scenarioOf("test", {
      name: backoff,
      question: "",
      pods: 4,
      durationUs: 10 * SECOND,
      limits: [limitOf({ rate: 50 })],
      workload: retryStorm({ clients: 400, thinkUs: SECOND, backoff, attemptsMax: 1_000 }),
    });
    const result = await runScenario(scenario, TOKEN_BUCKET, 1);
    expect(result.limits[0]?.admitted).toBeGreaterThan(500);
    return result.fleet.requests;
  };
  const rude = await requests("none");
  const polite = await requests("retry-after-jitter");
  expect(rude).toBeGreaterThan(2 * polite);
});
