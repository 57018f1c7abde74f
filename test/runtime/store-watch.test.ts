import { beforeEach, describe, expect, it } from "vitest";
import { StoreWatch } from "../../src/runtime/store-watch.ts";

describe("the store watch", () => {
  let now: number;
  let said: string;
  let watch: StoreWatch;

  beforeEach(() => {
    now = 0;
    said = "";
    watch = new StoreWatch(
      { monotonicUs: () => now },
      {
        observe: (at, state, detail) => {
          said = `${at / 1_000} ${state} ${detail}`.trim();
        },
      },
    );
  });

  const noteAt = (ms: number, outcome: "ok" | "timeout" | "unreachable"): string => {
    now = ms * 1_000;
    watch.note(outcome, outcome === "ok" ? undefined : new Error("no reply"));
    return said;
  };

  it("calls a store up that fails between successes", () => {
    for (let ms = 0; ms < 10_000; ms += 900) {
      expect(noteAt(ms, "timeout")).toBe(`${ms} up no reply`);
      expect(noteAt(ms + 800, "timeout")).toBe(`${ms + 800} up no reply`);
      expect(noteAt(ms + 850, "ok")).toBe(`${ms + 850} up`);
    }
  });

  it("calls it away after a second of failures, up at the first success", () => {
    expect(noteAt(0, "timeout")).toBe("0 up no reply");
    expect(noteAt(999, "timeout")).toBe("999 up no reply");
    expect(noteAt(1_000, "timeout")).toBe("1000 timeout no reply");
    expect(noteAt(60_000, "timeout")).toBe("60000 timeout no reply");
    expect(noteAt(60_001, "ok")).toBe("60001 up");
    expect(noteAt(60_002, "timeout")).toBe("60002 up no reply");
  });

  it("keeps the name of the trouble while its looks change", () => {
    noteAt(0, "timeout");
    expect(noteAt(1_200, "unreachable")).toBe("1200 unreachable no reply");
    expect(noteAt(1_300, "timeout")).toBe("1300 unreachable no reply");
  });
});
