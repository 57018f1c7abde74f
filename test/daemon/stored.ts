/** Looks into a real Redis, past the sidecars: what they have stored, and whether it can expire. */
import { Redis } from "ioredis";
import { KeyNames } from "../../src/store/redis/keys.ts";
import type { RedisServer } from "../support/redis-server.ts";

/** Lanes of a single server; they only decide which names the lane records have. */
const LANES = 4;
/** Places of `P` and `D` in the sixteen doubles of a key's state; lua/lib/key-state.lua. */
const PERIOD = 1;
const DEFICIT = 3;

export class StoredState {
  private readonly redis: Redis;
  private readonly names: KeyNames;

  constructor(server: RedisServer, fleet = "test") {
    this.redis = new Redis({ host: server.host, port: server.port, protocol: 2 });
    this.redis.on("error", () => {}); // tests stop the server on purpose; commands tell
    this.names = new KeyNames(fleet, LANES);
  }

  close(): void {
    this.redis.disconnect();
  }

  /**
   * Tokens missing from the bucket of a key; what was consumed, for a limit that hardly refills.
   */
  async missing(limit: string, key: string): Promise<number> {
    const value = await this.redis.getBuffer(this.names.state(limit, key));
    if (value === null) return 0;
    return value.readDoubleLE(8 * DEFICIT) / value.readDoubleLE(8 * PERIOD);
  }

  /** Members of the fleet, as "pod/incarnation". */
  async members(): Promise<string[]> {
    return this.redis.zrange(this.names.pods(), "0", "-1");
  }

  async forgetMembers(): Promise<void> {
    await this.redis.del(this.names.pods());
  }

  /** Names of all keys on the server. */
  async keys(): Promise<string[]> {
    return this.redis.keys("*");
  }

  /** Names of keys that would stay for ever. */
  async eternal(): Promise<string[]> {
    const found: string[] = [];
    for (const key of await this.keys()) if ((await this.redis.pttl(key)) === -1) found.push(key);
    return found;
  }
}
