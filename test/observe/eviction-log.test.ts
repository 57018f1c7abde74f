import { describe, expect, it } from "vitest";
import { Tally } from "../../src/core/tally.ts";
import { EvictionLog } from "../../src/observe/eviction-log.ts";
import { createLogger } from "../../src/observe/logger.ts";

const HOUR_US = 3_600_000_000;

interface Line {
  readonly level: string;
  readonly msg: string;
  readonly policy?: string;
}

function watched(): { log: EvictionLog; lines: Line[] } {
  const lines: Line[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  return { log: new EvictionLog(createLogger({ level: "info", destination })), lines };
}

/** A limit of this name with so many keys lost. */
function limitWith(name: string, lostKeys: number): { name: string; tally: Tally } {
  const tally = new Tally();
  tally.lostKeys = lostKeys;
  return { name, tally };
}

describe("the log of keys that the store drops", () => {
  it("warns once of each policy by which a server evicts", () => {
    const { log, lines } = watched();
    for (const policy of ["allkeys-lru", "allkeys-lru", "volatile-ttl"]) log.mayEvict(policy);
    expect(lines.map(({ policy }) => policy)).toEqual(["allkeys-lru", "volatile-ttl"]);
    expect(lines[0]).toMatchObject({ level: "warn" });
    expect(lines[0]?.msg).toContain("set maxmemory-policy noeviction");
  });

  it("says what lost keys mean, when there are any, and how many at most once an hour", () => {
    const { log, lines } = watched();
    log.look(1, { limits: [limitWith("api", 0), limitWith("login", 0)] });
    expect(lines).toEqual([]);
    log.look(2, { limits: [limitWith("api", 0), limitWith("login", 2)] });
    log.look(3, { limits: [limitWith("api", 1), limitWith("login", 5)] });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ level: "warn", keys: 2, limits: ["login"] });
    expect(lines[0]?.msg).toContain("evicts");
    log.look(2 + HOUR_US, { limits: [limitWith("api", 1), limitWith("login", 5)] });
    log.look(3 + HOUR_US, { limits: [limitWith("api", 9), limitWith("login", 9)] });
    expect(lines).toHaveLength(2);
    expect(lines[1]).toMatchObject({ keys: 4, limits: ["api", "login"] });
  });

  it("is not misled by a limit that a reload has removed", () => {
    const { log, lines } = watched();
    log.look(1, { limits: [limitWith("api", 3), limitWith("login", 2)] });
    log.look(HOUR_US + 1, { limits: [limitWith("api", 3)] });
    expect(lines).toHaveLength(1);
    log.look(HOUR_US + 2, { limits: [limitWith("api", 4)] });
    expect(lines[1]).toMatchObject({ keys: 1, limits: ["api"] });
  });
});
