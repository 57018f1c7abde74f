import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo, ListenOptions } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { aliquot } from "./listening-io.ts";

interface Answer {
  readonly status: number;
  readonly body: string;
}

interface Asked {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly body: string;
}

const ALLOWED =
  '{"allowed":true,"limit":"a","remaining":41,"reset_after_ms":590,"retry_after_ms":0,' +
  '"source":"local","degraded":false,"shadow":false}';
const DENIED =
  '{"allowed":false,"limit":"a","remaining":0,"reset_after_ms":900,"retry_after_ms":390,' +
  '"source":"fallback","degraded":true,"shadow":false,"reason":"limit_exceeded"}';
const NEVER =
  '{"allowed":false,"limit":"a","remaining":5,"reset_after_ms":0,' +
  '"source":"local","degraded":false,"shadow":false,"reason":"cost_exceeds_burst"}';
const SHADOW =
  '{"allowed":true,"limit":"a","remaining":0,"reset_after_ms":9,"retry_after_ms":0,' +
  '"source":"local","degraded":false,"shadow":true,"would_deny":true}';

const servers: Server[] = [];
const folder = mkdtempSync(join(tmpdir(), "aliquot-cli-"));

afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Gives these answers in turn, the last one for ever, and notes what it is asked. */
async function sidecar(where: ListenOptions, ...answers: readonly Answer[]): Promise<Asked[]> {
  const asked: Asked[] = [];
  const server = createServer((req, res) => {
    let body = "";
    req.on("data", (chunk: Buffer) => {
      body += chunk.toString();
    });
    req.on("end", () => {
      const answer = answers[Math.min(asked.length, answers.length - 1)];
      asked.push({ method: req.method, url: req.url, body });
      res.writeHead(answer?.status ?? 500).end(answer?.body);
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(where, resolve));
  return asked;
}

function portOf(index: number): number {
  const address = servers[index]?.address() as AddressInfo | undefined;
  if (address === undefined) throw new Error(`there is no sidecar ${index}`);
  return address.port;
}

const tcp = { host: "127.0.0.1", port: 0 };

/** A port on which nobody listens: one that was free a moment ago. */
async function closedPort(): Promise<number> {
  await sidecar(tcp);
  const port = portOf(servers.length - 1);
  await new Promise((resolve) => servers.pop()?.close(resolve));
  return port;
}

describe("aliquot check", () => {
  it.each([
    [ALLOWED, 0, "allowed: a, 41 remaining, full in 590 ms, decided by local\n"],
    [
      DENIED,
      3,
      "denied: a, 0 remaining, retry after 390 ms, decided by fallback, store unreachable\n",
    ],
    [NEVER, 3, "denied: a, 5 remaining, never possible (cost_exceeds_burst), decided by local\n"],
    [
      SHADOW,
      0,
      "allowed (shadow: would be denied): a, 0 remaining, full in 9 ms, decided by local\n",
    ],
  ])("prints the decision %s and exits with %i", async (body, code, stdout) => {
    const asked = await sidecar(tcp, { status: 200, body });
    const flag = `--listen-http-tcp=127.0.0.1:${portOf(0)}`;
    expect(await aliquot(["check", "a", "k", "--cost", "2", flag])).toEqual({
      code,
      stdout,
      stderr: "",
    });
    expect(asked).toEqual([
      { method: "POST", url: "/v1/check", body: '{"limit":"a","key":"k","cost":2}' },
    ]);
    const json = await aliquot(["check", "a", "k", "--json", flag]);
    expect([json.code, json.stdout]).toEqual([code, `${body}\n`]);
  });

  it("asks the Unix socket before the TCP address", async () => {
    const bySocket = await sidecar(
      { path: join(folder, "http.sock") },
      {
        status: 200,
        body: ALLOWED,
      },
    );
    const byTcp = await sidecar(tcp, { status: 200, body: DENIED });
    const env = {
      ALIQUOT_LISTEN_HTTP_SOCKET: join(folder, "http.sock"),
      ALIQUOT_LISTEN_HTTP_TCP: `127.0.0.1:${portOf(1)}`,
    };
    expect((await aliquot(["check", "a", "k"], env)).code).toBe(0);
    expect([bySocket.length, byTcp.length]).toEqual([1, 0]);
  });

  it("falls back to TCP when there is no socket", async () => {
    await sidecar(tcp, { status: 200, body: DENIED });
    const flags = [
      `--listen-http-socket=${folder}/none.sock`,
      `--listen-http-tcp=127.0.0.1:${portOf(0)}`,
    ];
    expect((await aliquot(["check", "a", "k", ...flags])).code).toBe(3);
  });

  it("exits with 4 and names every place when nobody answers", async () => {
    const port = await closedPort();
    const socket = `${folder}/none.sock`;
    const flags = [`--listen-http-socket=${socket}`, `--listen-http-tcp=127.0.0.1:${port}`];
    expect(await aliquot(["check", "a", "k", ...flags])).toEqual({
      code: 4,
      stdout: "",
      stderr:
        `aliquot check: no sidecar answers; ${socket}: no such socket; ` +
        `127.0.0.1:${port}: connection refused\n`,
    });
  });

  it.each([
    [404, '{"detail":"there is no limit b; did you mean a?"}', "404: there is no limit b; did"],
    [503, '{"title":"Temporary Reduced Capacity"}', "503: Temporary Reduced Capacity"],
    [502, "<html>", "the sidecar answered 502\n"],
    [200, "null", "the sidecar answered 200\n"],
  ])("exits with 1 and tells what the sidecar said: %i %s", async (status, body, says) => {
    await sidecar(tcp, { status, body });
    const ran = await aliquot(["check", "b", "k", `--listen-http-tcp=127.0.0.1:${portOf(0)}`]);
    expect([ran.code, ran.stdout]).toEqual([1, ""]);
    expect(ran.stderr).toContain(says);
  });

  it("refuses to guess when the configuration that it was given is wrong", async () => {
    const ran = await aliquot(["check", "a", "k", "--config", "package.json"]);
    expect(ran.code).toBe(2);
    expect(ran.stderr).toContain("package.json:1:1: limits: is missing");
  });
});

describe("aliquot wait", () => {
  it("returns when the sidecar becomes ready", async () => {
    const asked = await sidecar(tcp, { status: 503, body: "no" }, { status: 200, body: "ok" });
    const ran = await aliquot(["wait", "--ops", `127.0.0.1:${portOf(0)}`]);
    expect(ran).toEqual({ code: 0, stdout: "", stderr: "" });
    expect(asked.map(({ url }) => url)).toEqual(["/readyz", "/readyz"]);
  });

  it("exits with 1 when the sidecar answers and is not ready in time", async () => {
    await sidecar(tcp, { status: 503, body: "draining" });
    const env = { ALIQUOT_OPS: `127.0.0.1:${portOf(0)}` };
    const { code, stderr } = await aliquot(["wait", "--timeout", "0s"], env);
    expect([code, stderr]).toEqual([
      1,
      'aliquot wait: not ready after 0s; the sidecar answers 503 "draining"\n',
    ]);
  });

  it("exits with 4 when nobody answers in time", async () => {
    const ops = `127.0.0.1:${await closedPort()}`;
    const { code, stderr } = await aliquot(["wait", "--timeout", "0s", "--ops", ops]);
    expect(code).toBe(4);
    expect(stderr).toContain(`${ops}: connection refused`);
  });
});

describe("aliquot health", () => {
  it.each([
    [[], "/livez"],
    [["--probe", "readyz"], "/readyz"],
    [["--probe", "startupz"], "/startupz"],
  ])("with %j exits with 0 when %s answers 200, else with 1", async (flags, url) => {
    const asked = await sidecar(tcp, { status: 200, body: "" }, { status: 503, body: "" });
    // A listener on every interface is asked on loopback.
    const ops = ["--ops", `0.0.0.0:${portOf(0)}`];
    expect((await aliquot(["health", ...flags, ...ops])).code).toBe(0);
    const sick = await aliquot(["health", ...flags, ...ops]);
    expect([sick.code, sick.stderr]).toEqual([1, `aliquot health: ${url} answers 503\n`]);
    expect(asked.map((each) => each.url)).toEqual([url, url]);
  });

  it("exits with 1 when nobody answers", async () => {
    const ops = `127.0.0.1:${await closedPort()}`;
    expect((await aliquot(["health", "--ops", ops])).code).toBe(1);
  });
});
