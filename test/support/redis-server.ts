/**
 * A real Redis (or Valkey) server for tests, in a temporary folder. Whatever a test does to it, it
 * is killed with the test process.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RedisServer, type RedisServerOptions } from "../../fleet/redis-server.ts";

export type { RedisServer } from "../../fleet/redis-server.ts";

const servers = new Set<RedisServer>();
let folder: string | undefined;
process.on("exit", () => {
  for (const server of servers) server.destroy();
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
});

/** Starts a server and waits until it answers. @throws {Error} With the server's last words. */
export async function startRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  folder ??= mkdtempSync(join(tmpdir(), "aliquot-redis-"));
  const server = await RedisServer.start(folder, { ...options, sharesGroup: true });
  servers.add(server);
  return server;
}
