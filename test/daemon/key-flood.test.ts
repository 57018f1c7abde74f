/** A sidecar with a small heap, and a million callers that come once. */
import { readFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { until } from "../../fleet/until.ts";
import { type Sidecar, startSidecar, stopSidecars } from "../support/sidecar.ts";

const LIMITS = [
  "  - { name: each, rate: 1/s, burst: 1 }",
  "  - { name: hot, rate: 10/s, burst: 10 }",
].join("\n");
const KEYS = 1_000_000;
const KEYS_MAX = 100_000;
const BATCH = 1_000;
const CALLERS = 2;
const BEFORE_THE_FLOOD = 50_000;
const GROWTH_MAX_MB = 50;

afterEach(stopSidecars);

function residentMb({ pid }: Sidecar): number {
  const pages = Number(readFileSync(`/proc/${pid}/statm`, "latin1").split(" ")[1]);
  return (pages * 4_096) / 1e6;
}

/** Asks a batch of keys that nobody has asked before, and the hot one. @returns Its verdict. */
function askBatch(agent: Agent, port: number, first: number): Promise<boolean> {
  const requests = Array.from({ length: BATCH }, (_, i) => ({
    limit: "each",
    key: `caller-${first + i}`,
  }));
  const body = JSON.stringify({ requests: [...requests, { limit: "hot", key: "k" }].slice(1) });
  return new Promise((resolve, reject) => {
    const to = { host: "127.0.0.1", port, path: "/v1/check/batch", method: "POST", agent };
    request(to, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      answer.once("end", () => {
        const { results } = JSON.parse(text) as { results: { allowed: boolean }[] };
        if (answer.statusCode !== 200 || results.length !== BATCH) reject(new Error(text));
        else resolve(results.at(-1)?.allowed === true);
      });
    })
      .once("error", reject)
      .end(body);
  });
}

/** Asks keys from `first` on. @returns How often the hot key was admitted. */
async function flood(port: number, first: number, count: number): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: CALLERS });
  let next = first;
  let hotAdmitted = 0;
  const caller = async (): Promise<void> => {
    while (next < first + count) {
      const mine = next;
      next += BATCH;
      if (await askBatch(agent, port, mine)) hotAdmitted += 1;
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  agent.destroy();
  return hotAdmitted;
}

describe("O20 a million keys that are asked for once", () => {
  it("fit into a small heap, are forgotten, and push out no key in use", async () => {
    const sidecar = await startSidecar({
      limits: LIMITS,
      extra: `keys_max: ${KEYS_MAX}`,
      env: { NODE_OPTIONS: "--max-old-space-size=256" },
    });
    await flood(sidecar.httpPort, KEYS, BEFORE_THE_FLOOD);
    const before = residentMb(sidecar);

    const begun = performance.now();
    const hotAdmitted = await flood(sidecar.httpPort, 0, KEYS);
    const seconds = (performance.now() - begun) / 1_000;
    const most = await sidecar.metric("aliquot_tracked_keys");
    expect(most).toBeGreaterThan(1_000);
    expect(most).toBeLessThanOrEqual(KEYS_MAX);
    // A key that is forgotten comes back full: ten more for each time.
    expect(hotAdmitted).toBeLessThanOrEqual(10 * seconds + 10 + 2);
    expect(hotAdmitted).toBeGreaterThanOrEqual(0.9 * 10 * seconds - 2);

    await until("nearly all are forgotten", 60_000, async () => {
      return (await sidecar.metric("aliquot_tracked_keys")) < 0.01 * most;
    });
    expect(sidecar.alive).toBe(true);
    expect(residentMb(sidecar) - before).toBeLessThan(GROWTH_MAX_MB);
  }, 180_000);
});
