import { beforeEach, describe, expect, it } from "vitest";
import { StoreWatch } from "../../src/runtime/store-watch.ts";

const MS = 1_000;

describe("the store watch", () => {
  let now = 0;
  let lines: string[];
  let watch: StoreWatch;

  beforeEach(() => {
    now = 0;
    lines = [];
    watch = new StoreWatch(
      { monotonicUs: () => now },
      {
        storeAway: (trouble) => lines.push(`${now / MS} away: ${trouble}`),
        storeBack: (awayUs) => lines.push(`${now / MS} back after ${awayUs / MS}`),
      },
    );
  });

  const failAt = (...instantsMs: number[]): void => {
    for (const ms of instantsMs) {
      now = ms * MS;
      watch.failed("timeout");
    }
  };
  const succeedAt = (ms: number): void => {
    now = ms * MS;
    watch.succeeded();
  };

  it("keeps quiet about failures between successes", () => {
    for (let ms = 0; ms < 10_000; ms += 900) {
      failAt(ms, ms + 800);
      succeedAt(ms + 850);
    }
    expect(lines).toEqual([]);
  });

  it("says once that the store went away and once that it is back", () => {
    failAt(0, 500, 1_000, 1_500, 2_000, 60_000);
    succeedAt(61_000);
    succeedAt(62_000);
    expect(lines).toEqual(["1000 away: timeout", "61000 back after 61000"]);
  });

  it("never speaks twice within a second, and never loses the last state", () => {
    failAt(0, 1_000);
    succeedAt(1_100);
    expect(lines).toEqual(["1000 away: timeout"]);
    succeedAt(2_100);
    expect(lines).toEqual(["1000 away: timeout", "2100 back after 2100"]);
  });
});
