/**
 * The image, as far as it can be run without an engine: what its stages build, started with its own
 * entry point as the user that it names, over files that nobody may write.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { Client, credentials, status } from "@grpc/grpc-js";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { until } from "../../fleet/until.ts";
import { freePort } from "../support/free-port.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { BuiltImage, entrypoint, healthCommand, lastStage, volume } from "./built-image.ts";

/** Who may become somebody else runs it as the image's user. */
const USER = Number(
  /^\d+/.exec(
    lastStage()
      .findLast((each) => each.getKeyword() === "USER")
      ?.getArgumentsContent() ?? "",
  )?.[0],
);
const identity = process.getuid?.() === 0 ? { uid: USER, gid: USER } : {};
const STARTED_WITHIN_MS = 20_000;
const SCENARIO = `duration: 2s
pods: 2
load: [{ limit: api, rate: 10/s }]
`;

const CHECK = "/v1/check?limit=api&key=k";
const REPLIED = /^aliquot_reconcile_total\{outcome="ok"\} [1-9]/m;

let image: BuiltImage;
let folder: string;
let child: ChildProcess | undefined;
let redis: RedisServer | undefined;
let printed = "";

beforeAll(() => {
  image = BuiltImage.build();
  folder = volume(identity.uid);
});

afterEach(async () => {
  child?.kill("SIGKILL");
  child = undefined;
  await redis?.dispose();
  redis = undefined;
});

afterAll(() => {
  image.dispose();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs a command of the image to its end. */
function run(words: readonly string[]) {
  const { program, args } = image.here(words);
  return spawnSync(program, args, { cwd: "/", env: {}, encoding: "utf8", ...identity });
}

const verb = (...args: string[]) => run([...entrypoint(), ...args]);

/** A configuration in the volume. @returns Its path and the port of the ops listener. */
async function configured(extra = ""): Promise<{ config: string; ops: number }> {
  const ops = await freePort();
  const config = join(folder, "aliquot.yaml");
  const lines = [
    "version: 1",
    "fleet: image",
    "listen:",
    `  http: { socket: ${join(folder, "http.sock")}, tcp: off }`,
    `  grpc: { socket: ${join(folder, "grpc.sock")} }`,
    `  ops: 127.0.0.1:${ops}`,
    "limits: [{ name: api, rate: 5/s, burst: 20 }]",
    extra,
    "",
  ];
  writeFileSync(config, lines.join("\n"));
  return { config, ops };
}

function serve(config: string): Promise<number | null> {
  const { program, args } = image.here([...entrypoint(), "serve", "--config", config]);
  printed = "";
  const started = spawn(program, args, { cwd: "/", env: {}, ...identity });
  child = started;
  for (const stream of [started.stdout, started.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      printed += text;
    });
  }
  return new Promise((resolve) => started.once("close", resolve));
}

function get(to: { socketPath: string } | { port: number }, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const asked = request({ ...to, host: "127.0.0.1", path, agent: false }, (answer) => {
      let body = "";
      answer.setEncoding("utf8").on("data", (text: string) => {
        body += text;
      });
      answer.on("end", () => resolve(body));
    });
    asked.on("error", reject).end();
  });
}

/** Calls with an empty message. @returns The answer in hex, or the status. */
function overGrpc(method: string): Promise<string> {
  const client = new Client(`unix://${join(folder, "grpc.sock")}`, credentials.createInsecure());
  const same = (bytes: Buffer): Buffer => bytes;
  return new Promise((resolve) => {
    client.makeUnaryRequest(method, same, same, Buffer.alloc(0), (error, bytes) => {
      client.close();
      resolve(error === null ? (bytes?.toString("hex") ?? "") : `status ${error.code}`);
    });
  });
}

describe("what the image holds", () => {
  it("is a few files of code, and of each package what it is and its licence", () => {
    const code = readdirSync(image.at("/app/dist/src"));
    expect(code).toContain("main.js");
    expect(code.length).toBeLessThan(30);
    const kept = readdirSync(image.at("/app/node_modules"), { recursive: true, encoding: "utf8" });
    const files = kept.filter((name) => statSync(image.at(`/app/node_modules/${name}`)).isFile());
    expect(files.filter((name) => /\.(c|m)?js$/.test(name))).toEqual([]);
    for (const name of ["pino", "zod", "yaml", "ioredis", "@grpc/grpc-js", "prom-client"]) {
      expect(files.filter((file) => file.startsWith(`${name}/`)).length, name).toBeGreaterThan(1);
    }
    const lock = JSON.parse(readFileSync("package-lock.json", "utf8")) as {
      packages: Record<string, { dev?: boolean; version: string }>;
    };
    for (const file of files.filter((name) => /^(@[^/]+\/)?[^/]+\/package\.json$/.test(name))) {
      const path = image.at(`/app/node_modules/${file}`);
      const { name, version } = JSON.parse(readFileSync(path, "utf8")) as Record<string, string>;
      expect(lock.packages[`node_modules/${name}`]).toMatchObject({ version });
      expect(lock.packages[`node_modules/${name}`]?.dev).toBeUndefined();
    }
  });

  it("is enough for every verb", () => {
    const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
    expect(verb("version").stdout).toContain(version);
    for (const args of [["schema"], ["openapi"], ["serve", "--help"], ["--help"]]) {
      expect(verb(...args)).toMatchObject({ status: 0, stderr: "" });
    }
    for (const name of ["k8s/base/aliquot.yaml", "k8s/example/aliquot.yaml"]) {
      const file = join(folder, "given.yaml");
      writeFileSync(file, readFileSync(name));
      const { status, stdout, stderr } = verb("validate", file);
      expect([status, stdout, stderr]).toEqual([0, stdout, ""]);
    }
  });

  it("simulates", async () => {
    const { config } = await configured();
    const scenario = join(folder, "scenario.yaml");
    writeFileSync(scenario, SCENARIO);
    const { status, stdout, stderr } = verb("simulate", scenario, "--config", config);
    expect(stderr).toBe("");
    expect([0, 1]).toContain(status);
    expect(stdout).toMatch(/admitted/);
  });
});

describe("a sidecar from the image", () => {
  it("answers, is healthy, writes nothing beside its volume, and ends with 0", async () => {
    const { config, ops } = await configured();
    const probe = healthCommand().map((word) => (word.endsWith("aliquot.yaml") ? config : word));
    expect(run(probe)).toMatchObject({ status: 1, stderr: expect.stringContaining(`${ops}`) });

    const ended = serve(config);
    const socketPath = join(folder, "http.sock");
    await until("it answers", STARTED_WITHIN_MS, async () => {
      return /"allowed":true/.test(await get({ socketPath }, CHECK).catch(() => ""));
    });
    await until("it is ready", STARTED_WITHIN_MS, () => printed.includes("grpc.sock"));
    expect(run(probe)).toMatchObject({ status: 0, stderr: "" });
    expect(await get({ port: ops }, "/metrics")).toContain("aliquot_decisions_total");
    expect(await overGrpc("/grpc.health.v1.Health/Check")).toBe("0801"); // serving
    expect(await overGrpc("/grpc.health.v1.Health/Nothing")).toBe(`status ${status.UNIMPLEMENTED}`);
    expect(readdirSync(folder)).toEqual(expect.arrayContaining(["grpc.sock", "http.sock"]));
    child?.kill("SIGTERM");
    expect(await ended).toBe(0);
    expect(readdirSync(folder).filter((name) => name.endsWith(".sock"))).toEqual([]);
  });

  it("finds its Lua scripts and speaks to Redis", async () => {
    redis = await startRedis();
    const { config, ops } = await configured(`redis: { url: "${redis.url}" }`);
    const ended = serve(config);
    const socketPath = join(folder, "http.sock");
    await until("Redis is up", STARTED_WITHIN_MS, async () => {
      await get({ socketPath }, CHECK).catch(() => "");
      return REPLIED.test(await get({ port: ops }, "/metrics").catch(() => ""));
    });
    child?.kill("SIGTERM");
    expect(await ended).toBe(0);
    expect(printed).not.toMatch(/"level":"(warn|error)"/);
  });
});
