/** Coordinators on a server of a test, waited for until they are connected. */
import {
  createRedisCoordinator,
  type RedisCoordinatorOptions,
} from "../../src/store/redis/redis-coordinator.ts";
import type { RedisServer } from "../support/redis-server.ts";
import { SECOND } from "./pod.ts";

/** The access that a coordinator needs to reach a server of a test. */
export function accessTo(
  server: RedisServer,
): Pick<
  RedisCoordinatorOptions,
  "topology" | "database" | "username" | "password" | "tls" | "commandTimeoutUs"
> {
  const { host, port } = server;
  return {
    topology: { kind: "single", server: { host, port } },
    database: 0,
    username: undefined,
    password: undefined,
    tls: undefined,
    commandTimeoutUs: 1 * SECOND,
  };
}

/** A coordinator that is connected. */
export async function connected(
  options: RedisCoordinatorOptions,
): Promise<ReturnType<typeof createRedisCoordinator>> {
  let markUp: () => void = () => {};
  const up = new Promise<void>((resolve) => {
    markUp = resolve;
  });
  const coordinator = createRedisCoordinator({
    ...options,
    onConnection: (change) => {
      options.onConnection?.(change);
      if (change.up) markUp();
    },
  });
  await up;
  return coordinator;
}
