/**
 * One call of Redis for every check, as a service behind `node:http` that answers as the sidecar
 * does: by the usual token bucket as a Lua script, or by rate-limiter-flexible.
 */
import { createServer } from "node:http";
import { Redis } from "ioredis";
import { RateLimiterRedis, RateLimiterRes } from "rate-limiter-flexible";
import { RATE } from "./design.ts";
import { luaRedis } from "./ioredis-asker.ts";

export const PER_CHECK_ARGUMENT = "--as-per-check-server";

export interface PerCheckSetup {
  readonly path: string;
  readonly redisUrl: string;
  readonly by: "lua" | "flexible";
}

interface Told {
  readonly allowed: boolean;
  readonly remaining: number;
  readonly resetAfterMs: number;
}

/** Runs in a process of its own. @param argument - A `PerCheckSetup` as JSON. */
export function runPerCheckServer(argument: string): void {
  const { path, redisUrl, by } = JSON.parse(argument) as PerCheckSetup;
  const decide = by === "lua" ? byLua(redisUrl) : byFlexible(redisUrl);
  const server = createServer((req, res) => {
    const key = new URLSearchParams((req.url ?? "").split("?")[1]).get("key") ?? "";
    decide(key).then(
      ({ allowed, remaining, resetAfterMs }) => {
        const body =
          `{"allowed":${allowed},"limit":"bench","remaining":${remaining},` +
          `"reset_after_ms":${resetAfterMs},"retry_after_ms":0}`;
        const headers = ["Content-Type", "application/json", "Content-Length", `${body.length}`];
        res.writeHead(200, headers);
        res.end(body, "latin1");
      },
      () => res.writeHead(503, ["Content-Length", "0"]).end(),
    );
  });
  // Its connections are idle while the other designs have their turn.
  server.keepAliveTimeout = 0;
  server.listen(path);
}

function byLua(redisUrl: string): (key: string) => Promise<Told> {
  const redis = luaRedis(redisUrl);
  return async (key) => {
    const [allowed, remaining] = await redis.takeTokens(`lua:${key}`, RATE, RATE, 1);
    const resetAfterMs = Math.ceil(((RATE - remaining) / RATE) * 1_000);
    return { allowed: allowed === 1, remaining, resetAfterMs };
  };
}

function byFlexible(redisUrl: string): (key: string) => Promise<Told> {
  const limiter = new RateLimiterRedis({
    storeClient: new Redis(redisUrl),
    points: RATE,
    duration: 1,
  });
  const told = (allowed: boolean, { remainingPoints, msBeforeNext }: RateLimiterRes): Told => ({
    allowed,
    remaining: remainingPoints,
    resetAfterMs: msBeforeNext,
  });
  return (key) =>
    limiter.consume(key).then(
      (state) => told(true, state),
      (refused: unknown) => {
        if (refused instanceof RateLimiterRes) return told(false, refused);
        throw refused;
      },
    );
}
