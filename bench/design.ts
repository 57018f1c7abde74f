/** The designs that are compared: Aliquot and what it replaces, in two groups that are alike. */

/**
 * How the application asks. `ioredis`: with a Redis client in its own process. `http`: another
 * process behind `node:http`.
 */
export type Front = "ioredis" | "http";

export interface Design {
  readonly name: DesignName;
  readonly front: Front;
  /** As it is printed. */
  readonly title: string;
  /** Checks of one request; times are told where it is one. */
  readonly checks: number;
}

export type DesignName =
  | "lua in process"
  | "aliquot by ioredis"
  | "aliquot pipelines"
  | "lua service"
  | "flexible service"
  | "aliquot service"
  | "aliquot batches";

const MANY = 100;

/** The first of each front is what the others of it are measured against. */
export const DESIGNS: readonly Design[] = [
  { name: "lua in process", front: "ioredis", title: "one Lua call a check", checks: 1 },
  { name: "aliquot by ioredis", front: "ioredis", title: "Aliquot over RESP", checks: 1 },
  {
    name: "aliquot pipelines",
    front: "ioredis",
    title: "Aliquot over RESP, raw pipelines of 100",
    checks: MANY,
  },
  { name: "lua service", front: "http", title: "one Lua call a check", checks: 1 },
  { name: "flexible service", front: "http", title: "rate-limiter-flexible", checks: 1 },
  { name: "aliquot service", front: "http", title: "Aliquot", checks: 1 },
  { name: "aliquot batches", front: "http", title: "Aliquot, batches of 100", checks: MANY },
];

/** What the designs of a front are measured against: one Lua call for every check. */
export const BASELINES: Readonly<Record<Front, DesignName>> = {
  ioredis: "lua in process",
  http: "lua service",
};

export const KEYS: readonly string[] = Array.from({ length: 10 }, (_, index) => `hot-${index}`);

/** Tokens per second and burst: never reached, so that all designs do the same. */
export const RATE = 1_000_000;

/** Checks at once as fast as they go, and connections over HTTP. */
export const AT_ONCE = 64;

/** The lower pace of the open loop, checks per second. */
export const LOW_PACE = 2_000;
/** The higher ones, as parts of what the baseline reached in the same run. */
export const HIGH_PARTS: readonly number[] = [0.8, 0.95];

/** Addresses of all that can be asked. */
export interface Places {
  readonly redisUrl: string;
  readonly flexiblePath: string;
  readonly luaPath: string;
  readonly httpPath: string;
  readonly respPath: string;
  readonly respPort: number;
}
