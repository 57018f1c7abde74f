/**
 * What the store says was consumed. For a limit that refills a token a day, what is missing from
 * its buckets is what the pods told of their admissions, token by token.
 */
import type { Cluster, Redis } from "ioredis";
import { KeyNames } from "../src/store/redis/keys.ts";

/** Most lanes there are; a key's name is the same with any number. */
const LANES = 64;
/** Places of `P` and `D` in the sixteen doubles of a key's state; lua/lib/key-state.lua. */
const PERIOD = 1;
const DEFICIT = 3;

/** The name under which a key's state is stored. */
export function stateName(fleet: string, limit: string, key: string): string {
  return new KeyNames(fleet, LANES).state(limit, key);
}

/** Tokens missing from the stored bucket of one key; 0 when there is none. */
export async function missingTokens(redis: Redis | Cluster, name: string): Promise<number> {
  const value = await redis.getBuffer(name);
  return value === null ? 0 : value.readDoubleLE(8 * DEFICIT) / value.readDoubleLE(8 * PERIOD);
}
