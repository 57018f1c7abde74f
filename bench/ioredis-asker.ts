/**
 * Checks by ioredis in the application's own process: one call of the usual token bucket as a Lua
 * script for every check, or `ALIQUOT.CHECK` of a sidecar. The client is the same, and so is the
 * transport; only what answers differs.
 */
import { Redis, type Result } from "ioredis";
import type { Asker } from "./asker.ts";
import { KEYS, RATE } from "./design.ts";

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

/** A sidecar is not asked for the state of a Redis, so neither is one. */
const OPTIONS = { enableReadyCheck: false } as const;

/** A client that has the script as `takeTokens`. */
export function luaRedis(url: string): Redis {
  const redis = new Redis(url, OPTIONS);
  redis.defineCommand("takeTokens", { numberOfKeys: 1, lua: TOKEN_BUCKET });
  return redis;
}

/** Asks for the hot keys in turn. */
export class IoredisAsker implements Asker {
  readonly #redis: Redis;
  readonly #isAdmitted: (redis: Redis, key: string) => Promise<boolean>;
  #next = 0;

  private constructor(redis: Redis, isAdmitted: (redis: Redis, key: string) => Promise<boolean>) {
    this.#redis = redis;
    this.#isAdmitted = isAdmitted;
  }

  static lua(url: string): IoredisAsker {
    return new IoredisAsker(luaRedis(url), (redis, key) =>
      redis.takeTokens(key, RATE, RATE, 1).then(([allowed]) => allowed === 1),
    );
  }

  static aliquot(port: number): IoredisAsker {
    return new IoredisAsker(new Redis({ ...OPTIONS, port, host: "127.0.0.1" }), (redis, key) =>
      redis.call("ALIQUOT.CHECK", "bench", key).then((reply) => (reply as [number])[0] === 0),
    );
  }

  ask(done: (isRight: boolean) => void): void {
    const key = KEYS[this.#next] as string;
    this.#next = (this.#next + 1) % KEYS.length;
    this.#isAdmitted(this.#redis, key).then(done, () => done(false));
  }

  close(): void {
    this.#redis.disconnect();
  }
}
