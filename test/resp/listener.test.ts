import { existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { listenResp, type RespBounds } from "../../src/server/resp/resp-listener.ts";
import { ExactDecider, limitOf } from "../server/exact-decider.ts";
import { partsOf, RawClient } from "./resp-door.ts";

interface Stage {
  readonly decider: ExactDecider;
  readonly path: string;
  readonly stop: (timeoutMs: number) => Promise<void>;
}

async function listen(bounds: Partial<RespBounds> = {}): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), "aliquot-resp-"));
  const path = join(folder, "r.sock");
  const decider = new ExactDecider([limitOf("api")]);
  const parts = partsOf(decider, () => decider.nowUs);
  const listener = await listenResp(parts, { kind: "unix", path, mode: 0o600 }, bounds);
  onTestFinished(async () => {
    await listener.stop(100);
    rmSync(folder, { recursive: true, force: true });
    expect(parts.faults).toEqual([]);
  });
  expect(listener.address).toBe(path);
  return { decider, path, stop: (timeoutMs) => listener.stop(timeoutMs) };
}

describe("a RESP listener", () => {
  it("has a socket of the mode that it was given", async () => {
    const { path } = await listen();
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(await new RawClient({ path }).say("PING\r\n")).toBe("+PONG\r\n");
  });

  it("listens on TCP as well", async () => {
    const decider = new ExactDecider([limitOf("api")]);
    const parts = partsOf(decider, () => 0);
    const listener = await listenResp(parts, { kind: "tcp", host: "127.0.0.1", port: 0 });
    onTestFinished(() => listener.stop(100));
    expect(listener.address).toBe(`127.0.0.1:${listener.port}`);
    const client = new RawClient({ port: listener.port ?? 0 });
    expect(await client.say("PING\r\n")).toBe("+PONG\r\n");
  });

  it("gives connections numbers of their own", async () => {
    const { path } = await listen();
    const [first, second] = [new RawClient({ path }), new RawClient({ path })];
    expect(await first.say("CLIENT ID\r\n")).not.toBe(await second.say("CLIENT ID\r\n"));
  });

  it("closes connections beyond the maximum and serves the others", async () => {
    const { path } = await listen({ connectionsMax: 1 });
    const first = new RawClient({ path });
    expect(await first.say("PING\r\n")).toBe("+PONG\r\n");
    const second = new RawClient({ path });
    await second.ended;
    expect(second.text).toBe("");
    expect(await first.say("PING\r\n")).toBe("+PONG\r\n");
  });

  it("closes a connection over which nothing goes, also one with half a request", async () => {
    const { path } = await listen({ idleTimeoutMs: 100 });
    const [idle, half] = [new RawClient({ path }), new RawClient({ path })];
    half.socket.write("*2\r\n$4\r\nECHO\r\n$9\r\nhal");
    await Promise.all([idle.ended, half.ended]);
  });

  it("answers a client that has ended its side, and then ends the other", async () => {
    const { path } = await listen();
    const client = new RawClient({ path });
    client.socket.end("PING\r\nALIQUOT.CHECK api k\r\n");
    await client.ended;
    expect(client.text).toBe("+PONG\r\n*5\r\n:0\r\n:10\r\n:9\r\n:-1\r\n:1\r\n");
  });

  it("lets a client read why it was closed, though it has more to say", async () => {
    const { path } = await listen();
    const client = new RawClient({ path });
    client.socket.write(`*x\r\n${"PING\r\n".repeat(100_000)}`);
    await client.ended;
    expect(client.text).toMatch(/^-ERR Protocol error: invalid multibulk length; .*\r\n$/);
  });
});

describe("a RESP listener that stops", () => {
  it("answers checks that wait, closes, and removes its socket", async () => {
    const { decider, path, stop } = await listen();
    let settle = (): void => {};
    decider.hold = () =>
      new Promise((resolve) => {
        settle = resolve;
      });
    const [busy, idle] = [new RawClient({ path }), new RawClient({ path })];
    await idle.say("PING\r\n");
    await busy.say("PING\r\nALIQUOT.CHECK api k\r\n");
    const stopped = stop(10_000);
    expect(existsSync(path)).toBe(false);
    await idle.ended;
    expect(busy.text).toBe("+PONG\r\n");
    settle();
    await busy.ended;
    expect(busy.text).toBe("+PONG\r\n*5\r\n:0\r\n:10\r\n:9\r\n:-1\r\n:1\r\n");
    await stopped;
  });

  it("cuts what takes too long", async () => {
    const { decider, path, stop } = await listen();
    decider.hold = () => new Promise(() => {});
    const client = new RawClient({ path });
    await client.say("PING\r\nALIQUOT.CHECK api k\r\n");
    await stop(50);
    await client.ended;
    expect(client.text).toBe("+PONG\r\n");
  });
});
