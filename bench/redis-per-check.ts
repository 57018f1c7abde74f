/**
 * The designs that Aliquot replaces: one call of Redis for every check. In the application's own
 * process with the usual token bucket as a Lua script, and as a service: rate-limiter-flexible
 * behind `node:http`, which answers as the sidecar does.
 */
import { createServer } from "node:http";
import { Redis, type Result } from "ioredis";
import { RateLimiterRedis, RateLimiterRes } from "rate-limiter-flexible";
import type { Asker } from "./asker.ts";

export const FLEXIBLE_ARGUMENT = "--as-flexible-server";

/** A token bucket in a hash, as it is found in many articles; the server's clock. */
const TOKEN_BUCKET = `
local rate, burst, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] + time[2] / 1e6
local bucket = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens = tonumber(bucket[1]) or burst
local at = tonumber(bucket[2]) or now
tokens = math.min(burst, tokens + math.max(0, now - at) * rate)
local allowed = tokens >= cost
if allowed then tokens = tokens - cost end
redis.call('HSET', KEYS[1], 'tokens', tokens, 'at', now)
redis.call('EXPIRE', KEYS[1], math.ceil(burst / rate * 2))
return { allowed and 1 or 0, math.floor(tokens) }
`;

declare module "ioredis" {
  interface RedisCommander<Context> {
    takeTokens(
      key: string,
      rate: number,
      burst: number,
      cost: number,
    ): Result<[number, number], Context>;
  }
}

/** Asks the script from this process. */
export class LuaAsker implements Asker {
  readonly #redis: Redis;
  readonly #keys: readonly string[];
  #next = 0;

  constructor(url: string, keys: readonly string[]) {
    this.#redis = new Redis(url);
    this.#redis.defineCommand("takeTokens", { numberOfKeys: 1, lua: TOKEN_BUCKET });
    this.#keys = keys.map((key) => `bench:${key}`);
  }

  ask(done: (isRight: boolean) => void): void {
    const key = this.#keys[this.#next] as string;
    this.#next = (this.#next + 1) % this.#keys.length;
    this.#redis.takeTokens(key, RATE, RATE, 1).then(
      ([allowed]) => done(allowed === 1),
      () => done(false),
    );
  }

  close(): void {
    this.#redis.disconnect();
  }
}

/** Tokens per second and burst: never reached, so that all designs do the same. */
export const RATE = 1_000_000;

/** Runs in a process of its own. @param argument - Where to listen and the Redis, as JSON. */
export function runFlexibleServer(argument: string): void {
  const { path, redisUrl } = JSON.parse(argument) as {
    readonly path: string;
    readonly redisUrl: string;
  };
  const limiter = new RateLimiterRedis({
    storeClient: new Redis(redisUrl),
    points: RATE,
    duration: 1,
  });
  const server = createServer((req, res) => {
    const key = new URLSearchParams((req.url ?? "").split("?")[1]).get("key") ?? "";
    const answer = (allowed: boolean, state: RateLimiterRes): void => {
      const body =
        `{"allowed":${allowed},"limit":"bench","remaining":${state.remainingPoints},` +
        `"reset_after_ms":${state.msBeforeNext},"retry_after_ms":0}`;
      res.writeHead(200, ["Content-Type", "application/json", "Content-Length", `${body.length}`]);
      res.end(body, "latin1");
    };
    limiter.consume(key).then(
      (state) => answer(true, state),
      (refused: unknown) => {
        if (refused instanceof RateLimiterRes) answer(false, refused);
        else res.writeHead(503, ["Content-Length", "0"]).end();
      },
    );
  });
  // Its connections are idle while the other designs have their turn.
  server.keepAliveTimeout = 0;
  server.listen(path);
}
