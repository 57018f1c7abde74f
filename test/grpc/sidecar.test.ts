/** The gRPC service of real sidecar processes. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Sidecar, startSidecar, stopSidecars } from "../support/sidecar.ts";
import { call, codes, connect, descriptor, request } from "./rate-limit-door.ts";

const LIMITS = "  - { name: api, rate: 1/h, burst: 1000 }";
const RESTARTS = 50;

let folder: string;
let grpcSocket: string;
let extra: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "aliquot-envoy-"));
  grpcSocket = join(folder, "grpc.sock");
  mkdirSync(join(folder, "rules"));
  const rule = "{ key: a, rate_limit: { unit: day, requests_per_unit: 1000 } }";
  writeFileSync(join(folder, "rules", "d.yaml"), `domain: d\ndescriptors: [${rule}]\n`);
  // What a ConfigMap keeps beside its files must not be read twice.
  mkdirSync(join(folder, "rules", "..data"));
  writeFileSync(join(folder, "rules", "..data", "d.yaml"), `domain: d\n`);
  extra = `envoy: { domains: ["${folder}/*/*.yaml"] }`;
});

afterEach(async () => {
  await stopSidecars();
  rmSync(folder, { recursive: true, force: true });
});

const start = (unready = false): Promise<Sidecar> =>
  startSidecar({ limits: LIMITS, grpcSocket, extra, unready });

async function ask(asked = request("a=1")): Promise<string> {
  const client = connect(grpcSocket);
  try {
    return codes(await call(client, asked));
  } finally {
    client.close();
  }
}

const sockets = (): readonly string[] =>
  readdirSync(folder).filter((name) => name.endsWith(".sock") || name.startsWith("."));

describe("O22 the gRPC socket of a sidecar", () => {
  it("(a) answers after every one of fifty kills, within 2 s of most starts", async () => {
    const took: number[] = [];
    for (let restart = 0; restart < RESTARTS; restart += 1) {
      const began = performance.now();
      const sidecar = await start();
      expect(await ask()).toBe("OK: OK 999");
      took.push(performance.now() - began);
      await sidecar.crash();
      expect(existsSync(grpcSocket)).toBe(true);
      sidecar.destroy();
    }
    expect(sockets()).toEqual(["grpc.sock"]);
    // A start is a new process; on a busy machine a single one says little.
    expect(took.toSorted((a, b) => a - b)[RESTARTS / 2]).toBeLessThan(2_000);
    expect(Math.max(...took)).toBeLessThan(10_000);
  }, 300_000);

  it("(b) stays with the first of two sidecars", async () => {
    await start();
    const second = await start(true);
    expect((await second.exited).code).toBe(1);
    expect(second.output.trim().split("\n")).toHaveLength(1);
    expect(second.output).toContain(`another process answers on the socket ${grpcSocket}`);
    expect(await ask()).toBe("OK: OK 999");
  });

  it("(c) is not put over a file or a directory", async () => {
    writeFileSync(grpcSocket, "precious");
    const overFile = await start(true);
    expect((await overFile.exited).code).toBe(1);
    expect(overFile.output).toContain(`${grpcSocket} is a regular file`);
    rmSync(grpcSocket);
    mkdirSync(grpcSocket);
    const overFolder = await start(true);
    expect((await overFolder.exited).code).toBe(1);
    expect(overFolder.output).toContain(`${grpcSocket} is a directory`);
  });

  it("(d) is gone after SIGTERM", async () => {
    const sidecar = await start();
    expect(await ask()).toBe("OK: OK 999");
    sidecar.signal("SIGTERM");
    expect(await sidecar.exited).toEqual({ code: 0, signal: null });
    expect(sockets()).toEqual([]);
  });
});

describe("a sidecar with rules for Envoy", () => {
  it("counts what it decides, and how long that took, under gRPC", async () => {
    const sidecar = await start();
    await ask(request("a=1", "x=1"));
    await ask({ domain: "other", descriptors: [descriptor("a=1")] });
    const metrics = await sidecar.metrics();
    const count = (name: string): number => metrics.get(name) ?? Number.NaN;
    expect(count("aliquot_unmatched_descriptors_total")).toBe(2);
    expect(count('aliquot_decision_duration_seconds_count{transport="grpc"}')).toBe(2);
    const decided = 'limit="envoy/d/a",outcome="allowed",source="local"';
    expect(count(`aliquot_decisions_total{${decided}}`)).toBe(1);
  });

  it("says where Envoy finds it, and spends from the same buckets over HTTP", async () => {
    const sidecar = await start();
    await ask();
    expect(sidecar.output).toContain(grpcSocket);
    const answer = await fetch(`http://127.0.0.1:${sidecar.httpPort}/json`, {
      method: "POST",
      body: JSON.stringify(request("a=1")),
    });
    expect(await answer.json()).toMatchObject({ statuses: [{ limitRemaining: 998 }] });
  });

  it("lists the limits of its rules with the others", async () => {
    const sidecar = await start();
    const answer = await fetch(`http://127.0.0.1:${sidecar.httpPort}/v1/limits`);
    const { limits } = (await answer.json()) as { limits: { name: string }[] };
    expect(limits.map(({ name }) => name)).toEqual(["api", "envoy/d/a", "envoy/d/@override"]);
  });
});
