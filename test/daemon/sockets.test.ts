import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../fleet/until.ts";
import { startSidecar, stopSidecars } from "../support/sidecar.ts";

const LIMITS = "  - { name: api, rate: 1/h, burst: 1000 }";
const RESTARTS = 50;
/** Half a second on a quiet machine; the rest is for a machine with other work. */
const ANSWERS_WITHIN_MS = 15_000;

let folder: string;
let socket: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "aliquot-sockets-"));
  socket = join(folder, "http.sock");
});

afterEach(async () => {
  await stopSidecars();
  rmSync(folder, { recursive: true, force: true });
});

describe("O22 a socket file left by a crash", () => {
  it("(a) never stops a restart: the socket answers soon, fifty times", async () => {
    for (let restart = 0; restart < RESTARTS; restart += 1) {
      const start = performance.now();
      const sidecar = await startSidecar({ limits: LIMITS, socket });
      const answer = await sidecar.askSocket("api", "k");
      expect(answer.status).toBe(200);
      expect(performance.now() - start).toBeLessThan(ANSWERS_WITHIN_MS);
      await sidecar.crash();
      expect(existsSync(socket)).toBe(true);
      sidecar.destroy();
    }
    expect(readdirSync(folder)).toEqual(["http.sock"]);
  }, 400_000);

  it("(b) stays with a live process: a second one is refused, the first keeps answering", async () => {
    const first = await startSidecar({ limits: LIMITS, socket });
    const second = await startSidecar({ limits: LIMITS, socket, unready: true });
    const { code } = await second.exited;
    expect(code).toBe(1);
    expect(second.output.trim().split("\n")).toHaveLength(1);
    expect(second.output).toContain(socket);
    for (let i = 0; i < 10; i += 1) expect((await first.askSocket("api", "k")).status).toBe(200);
  });

  it("(c) is the only kind of file that is replaced", async () => {
    writeFileSync(socket, "precious");
    const overFile = await startSidecar({ limits: LIMITS, socket, unready: true });
    expect((await overFile.exited).code).toBe(1);
    expect(overFile.output).toContain(socket);
    expect(readFileSync(socket, "utf8")).toBe("precious");

    const directory = join(folder, "directory");
    mkdirSync(directory);
    writeFileSync(join(directory, "inside"), "precious");
    const overDirectory = await startSidecar({ limits: LIMITS, socket: directory, unready: true });
    expect((await overDirectory.exited).code).toBe(1);
    expect(overDirectory.output).toContain(directory);
    expect(readFileSync(join(directory, "inside"), "utf8")).toBe("precious");
  });

  it.each(["SIGTERM", "SIGINT"] as const)(
    "(d) is not left by %s, which ends with 0",
    async (signal) => {
      const sidecar = await startSidecar({ limits: LIMITS, socket });
      expect((await sidecar.askSocket("api", "k")).status).toBe(200);
      sidecar.signal(signal);
      expect(await sidecar.exited).toEqual({ code: 0, signal: null });
      expect(readdirSync(folder)).toEqual([]);
    },
  );
});

describe("a listener that cannot be bound", () => {
  it("ends the start with one sentence, and takes the other sockets with it", async () => {
    const first = await startSidecar({ limits: LIMITS, socket });
    const other = join(folder, "other.sock");
    const extra = `drain_timeout: 1s`;
    const second = await startSidecar({
      limits: LIMITS,
      socket: other,
      httpPort: first.httpPort,
      extra,
      unready: true,
    });
    expect((await second.exited).code).toBe(1);
    expect(second.output).toContain(`127.0.0.1:${first.httpPort}`);
    expect(readdirSync(folder)).toEqual(["http.sock"]);
    expect((await first.ask("api", "k")).status).toBe(200);
  });
});

describe("a secret that cannot be read", () => {
  it("ends the start with one sentence that names the file", async () => {
    const sidecar = await startSidecar({
      limits: LIMITS,
      socket,
      redisUrl: "redis://127.0.0.1:1\n  password_file: /nowhere/password",
      unready: true,
    });
    expect((await sidecar.exited).code).toBe(1);
    expect(sidecar.output).toContain("/nowhere/password");
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe("the start lines", () => {
  it("say in at most ten lines where it listens, and give a curl line that works", async () => {
    const sidecar = await startSidecar({ limits: LIMITS, socket });
    await until("the start lines are there", 2_000, () => sidecar.output.includes("curl"));
    const lines = sidecar.output.trim().split("\n");
    expect(lines.length).toBeLessThanOrEqual(10);
    expect(sidecar.output).toContain(`127.0.0.1:${sidecar.httpPort}`);
    expect(sidecar.output).toContain(socket);
    const url = /curl -s '([^']+)'/.exec(sidecar.output)?.[1] ?? "";
    const answer = await fetch(url);
    expect(await answer.json()).toMatchObject({ allowed: true, remaining: 999 });
  });
});
