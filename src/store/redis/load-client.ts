/** The client of Redis, loaded when it is configured: who is alone neither reads nor keeps it. */
import type { createRedisCoordinator } from "./redis-coordinator.ts";

export type ConnectRedis = typeof createRedisCoordinator;

export async function loadRedisClient(): Promise<ConnectRedis> {
  return (await import("./redis-coordinator.ts")).createRedisCoordinator;
}
