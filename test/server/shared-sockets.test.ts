import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SharedSockets } from "../../src/server/shared-sockets.ts";

let folder: string;
let path: string;
const servers: Server[] = [];
const noTrouble = (error: unknown): void => expect(error).toBeUndefined();

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "aq-"));
  path = join(folder, "http.sock");
});

afterEach(() => {
  for (const server of servers.splice(0)) server.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Stands for the first worker that wants to listen. */
async function bind(name: string): Promise<Server> {
  const server = createServer();
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(name, resolve));
  return server;
}

const end = (server: Server): Promise<void> =>
  new Promise((resolve) => server.close(() => resolve()));

async function claimed(): Promise<{ sockets: SharedSockets; name: string; server: Server }> {
  const sockets = new SharedSockets();
  await sockets.claim([path], 0o640);
  const name = sockets.boundAs.get(path) ?? "";
  const server = await bind(name);
  sockets.bound(name, noTrouble);
  await sockets.inPlace;
  return { sockets, name, server };
}

describe("a Unix socket that several processes serve", () => {
  it("stands at its path, with its mode, when the first of them has bound it", async () => {
    const { sockets, name } = await claimed();
    expect(readdirSync(folder)).toEqual(["http.sock"]);
    expect(statSync(path).mode & 0o777).toBe(0o640);
    // The others listen as well, on what is bound already.
    const { ino } = statSync(path);
    sockets.bound(name, noTrouble);
    expect(statSync(path).ino).toBe(ino);
    sockets.release();
    expect(existsSync(path)).toBe(false);
  });

  it("is put in its place anew when all of them were gone", async () => {
    const { sockets, name, server } = await claimed();
    await end(server);
    expect(existsSync(path)).toBe(true);
    await bind(name);
    sockets.bound(name, noTrouble);
    expect(readdirSync(folder)).toEqual(["http.sock"]);
    expect(statSync(path).mode & 0o777).toBe(0o640);
    sockets.release();
    expect(readdirSync(folder)).toEqual([]);
  });

  it("stays away when it is bound again after the stop", async () => {
    const { sockets, name, server } = await claimed();
    await end(server);
    sockets.release();
    await bind(name);
    sockets.bound(name, noTrouble);
    expect(existsSync(path)).toBe(false);
  });

  it("leaves the path to a process that has taken it meanwhile, and says so", async () => {
    const { sockets, name, server } = await claimed();
    await end(server);
    rmSync(path);
    writeFileSync(path, "precious");
    await bind(name);
    const troubles: unknown[] = [];
    sockets.bound(name, (error) => troubles.push(error));
    expect(String(troubles)).toContain(`another process has just taken the socket ${path}`);
    sockets.release();
    expect(readdirSync(folder)).toEqual(["http.sock"]);
    expect(statSync(path).isSocket()).toBe(false);
  });

  it("is refused before anything is started when its path is in use", async () => {
    await bind(path);
    const sockets = new SharedSockets();
    await expect(sockets.claim([path], 0o640)).rejects.toThrow("another process answers");
  });
});
