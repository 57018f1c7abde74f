import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { RedisCluster } from "../../fleet/redis-cluster.ts";
import { until } from "../../fleet/until.ts";
import { projectFiles } from "../support/project-files.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { type Sidecar, startSidecar, stopSidecars } from "../support/sidecar.ts";
import { admitted, consumed, gathered, settled } from "./bookkeeping.ts";

const LIMITS = "  - { name: slow, rate: 1/d, burst: 1000 }";

/** The rules as the operator reads them, from the code block of that name. */
function rulesInDocs(): string[] {
  const docs = readFileSync(new URL("../../docs/operations.md", import.meta.url), "utf8");
  const block = /```text acl\n([\s\S]*?)```/.exec(docs)?.[1];
  if (block === undefined) throw new Error("docs/operations.md has no block of ACL rules");
  return block.split(/\s+/).filter((word) => /^[~+]/.test(word));
}

/** Commands that the scripts call, each as often as it is written. */
function commandsOfScripts(): string[] {
  const lua = projectFiles().filter(({ path }) => path.startsWith("lua/"));
  const calls = lua.flatMap(({ text }) => [...text.matchAll(/redis\.p?call\("([A-Z]+)"/g)]);
  return calls.map(([, command = ""]) => command.toLowerCase());
}

const RULES = rulesInDocs();
/** What goes over the connection itself; the rest is called by the scripts. */
const CONNECTION = ["eval", "evalsha", "info", "client|setname", "select"];
const CLUSTER_ONLY = ["asking", "cluster|slots", "cluster|info", "readonly"];

let folder: string;
let passwordFile: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "aliquot-secrets-"));
  passwordFile = join(folder, "password");
  writeFileSync(passwordFile, "first\n");
});

afterEach(async () => {
  await stopSidecars();
  rmSync(folder, { recursive: true, force: true });
});

const access = (place: string): string =>
  `redis:\n  ${place}\n  username: aliquot\n  password_file: ${passwordFile}`;

const setUser = (admin: Redis, rules: readonly string[]): Promise<unknown> =>
  admin.call("ACL", "SETUSER", "aliquot", "reset", "on", ">first", ...rules);

describe("the ACL rules in the documentation", () => {
  it("name the commands of the scripts and of the connection, and no other", () => {
    const named = RULES.filter((rule) => rule.startsWith("+")).map((rule) => rule.slice(1));
    const needed = new Set([...commandsOfScripts(), ...CONNECTION, ...CLUSTER_ONLY]);
    expect(named.sort()).toEqual([...needed].sort());
    expect(RULES.filter((rule) => rule.startsWith("~"))).toEqual(["~aliquot:*"]);
  });

  describe("on a single server", () => {
    let redis: RedisServer;
    let admin: Redis;

    beforeEach(async () => {
      redis = await startRedis();
      admin = new Redis(redis.port, redis.host, { protocol: 2 });
    });

    afterEach(async () => {
      admin.disconnect();
      await redis.dispose();
    });

    const start = (database = 0): Promise<Sidecar> =>
      startSidecar({
        limits: LIMITS,
        extra: access(`url: ${redis.url.replace("/0", `/${database}`)}`),
      });

    it("are enough, with any database, and nothing is denied", async () => {
      await setUser(admin, RULES);
      for (const database of [0, 3]) {
        const pod = await start(database);
        await gathered([pod]);
        await pod.report("slow", "k", 5);
        await settled([pod]);
        expect(await pod.terminate()).toEqual({ code: 0, signal: null });
        expect(pod.output).not.toMatch(/warn|NOPERM/i);
      }
      expect(await admin.call("ACL", "LOG")).toEqual([]);
    });

    it.each(["evalsha", "set", "time", "zadd"])(
      "are all needed: without %s the log names the reason, and the pod decides by itself",
      async (command) => {
        await setUser(admin, [...RULES, `-${command}`]);
        const pod = await start();
        await until("it is said", 8_000, async () => {
          const { source } = await pod.check("slow", "k");
          return source === "fallback" && /NOPERM|can't run this command/.test(pod.output);
        });
        expect(await pod.metric("aliquot_fallback_active")).toBe(1);
        expect(await pod.metric("aliquot_store_up")).toBe(0);
      },
      20_000,
    );

    it("keep other programs' keys out of reach", async () => {
      await setUser(
        admin,
        RULES.map((rule) => (rule === "~aliquot:*" ? "~other:*" : rule)),
      );
      const pod = await start();
      await until("it is said", 8_000, async () => {
        await pod.check("slow", "k");
        return /NOPERM|No permissions/i.test(pod.output);
      });
    });

    it("a password that changes is read again from its file", async () => {
      await setUser(admin, RULES);
      const pod = await start();
      await gathered([pod]);
      await pod.report("slow", "k", 2);
      await settled([pod]);
      await admin.call("ACL", "SETUSER", "aliquot", "resetpass", ">second");
      await admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
      await until("the old password is refused", 8_000, async () => {
        await pod.check("slow", "k");
        return /WRONGPASS/.test(pod.output);
      });
      writeFileSync(passwordFile, "second\n");
      await gathered([pod]);
      await pod.report("slow", "k", 3);
      await settled([pod]);
      const told = await admitted([pod], "slow");
      expect(await consumed(admin, "slow", "k")).toBeCloseTo(5 + told, 2);
    });
  });

  it("are enough on a cluster, where a changed password is read again as well", async () => {
    const cluster = await RedisCluster.start(startRedis);
    try {
      for (const node of cluster.nodes) await setUser(cluster.admin(node), RULES);
      const keys = Array.from({ length: 30 }, (_, i) => `key-${i}`);
      const pod = await startSidecar({ limits: LIMITS, extra: access(cluster.yaml.slice(9)) });
      await gathered([pod]);
      for (const key of keys) await pod.report("slow", key, 1);
      await settled([pod]);
      for (const node of cluster.nodes) {
        expect(await cluster.admin(node).call("ACL", "LOG")).toEqual([]);
        await cluster.admin(node).call("ACL", "SETUSER", "aliquot", "resetpass", ">second");
      }
      writeFileSync(passwordFile, "second\n");
      await cluster.everywhere("CLIENT", "KILL", "USER", "aliquot");
      for (const key of keys) await pod.report("slow", key, 1);
      await gathered([pod]);
      await settled([pod]);
      for (const key of keys) expect(await consumed(cluster.client, "slow", key)).toBeCloseTo(2, 2);
    } finally {
      await stopSidecars();
      await cluster.dispose();
    }
  }, 60_000);
});
