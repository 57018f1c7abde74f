import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { HttpListener } from "../../src/server/listener.ts";
import { listenResp } from "../../src/server/resp/resp-listener.ts";
import { HOUR_US, limitOf } from "../server/exact-decider.ts";
import { SoleEngine } from "../support/sole-engine.ts";
import { deciderOf, INLINE, partsOf } from "./resp-door.ts";

const limits = [limitOf("hourly", { tokens: 1, spanUs: HOUR_US, burst: 5_000 }), INLINE];
const run = promisify(execFile);

let folder: string;
let path: string;
let listener: HttpListener;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "aliquot-resp-"));
  path = join(folder, "r.sock");
  const sole = new SoleEngine(limits);
  const parts = partsOf(deciderOf(sole, limits), () => sole.now);
  listener = await listenResp(parts, { kind: "unix", path, mode: 0o600 });
});

afterAll(async () => {
  await listener.stop(1_000);
  rmSync(folder, { recursive: true, force: true });
});

describe("ioredis", () => {
  async function connected(options: object = {}): Promise<Redis> {
    const client = new Redis({ path, lazyConnect: true, retryStrategy: () => null, ...options });
    onTestFinished(() => client.disconnect());
    await client.connect();
    expect(client.status).toBe("ready");
    return client;
  }

  it("connects with all that it asks before it is ready", async () => {
    const client = await connected({
      username: "default",
      password: "ignored",
      connectionName: "checkout",
      db: 0,
    });
    expect(await client.ping()).toBe("PONG");
    expect(await client.client("GETNAME")).toBe("checkout");
  });

  it.each([2, 3])("asks for checks in RESP%i", async (protocol) => {
    const client = await connected({ protocol });
    const key = `in-${protocol}`;
    const check = await client.call("ALIQUOT.CHECK", "hourly", key, "2");
    expect(check).toEqual([0, 5_000, 4_998, -1, 7_200]);
    const throttle = await client.call("CL.THROTTLE", key, "15", "30", "60");
    expect(throttle).toEqual([0, 16, 15, -1, 2]);
    await expect(client.call("ALIQUOT.CHECK", "hourli", key)).rejects.toThrow("the closest one is");
    await expect(client.call("GET", key)).rejects.toThrow("unknown command 'GET'");
  });

  it("gets the replies of a pipeline in order", async () => {
    const client = await connected();
    const pipeline = client.pipeline();
    for (let i = 0; i < 3_000; i += 1) pipeline.call("ALIQUOT.CHECK", "hourly", "pipelined");
    const replies = (await pipeline.exec()) ?? [];
    expect(replies.map(([error]) => error).filter((error) => error !== null)).toEqual([]);
    const left = replies.map(([, reply]) => (reply as number[])[2]);
    expect(left).toEqual(Array.from({ length: 3_000 }, (_, i) => 4_999 - i));
  });

  it("ends with QUIT", async () => {
    const client = await connected();
    expect(await client.quit()).toBe("OK");
  });
});

describe("redis-cli", () => {
  /** It comes with the server; the one of Valkey has a name of its own. */
  async function cli(...args: readonly string[]): Promise<string> {
    const withSocket = ["-s", path, ...args];
    try {
      return (await run("redis-cli", withSocket)).stdout;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      return (await run("valkey-cli", withSocket)).stdout;
    }
  }

  it("asks for checks", async () => {
    const [limited, limit, remaining, retry, reset] = ["0", "5000", "4999", "-1", "3600"];
    const answer = [limited, limit, remaining, retry, reset].join("\n");
    expect(await cli("ALIQUOT.CHECK", "hourly", "cli")).toBe(`${answer}\n`);
    expect(await cli("-3", "CL.THROTTLE", "cli", "0", "1", "10")).toBe("0\n1\n0\n-1\n10\n");
  });

  it("shows what the commands are", async () => {
    expect(await cli("-3", "COMMAND", "DOCS", "cl.throttle")).toContain("max_burst");
    expect(await cli("COMMAND", "COUNT")).toBe("11\n");
  });
});
