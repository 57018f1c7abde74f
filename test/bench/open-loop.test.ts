import { describe, expect, it } from "vitest";
import { type Asker, askPaced } from "../../bench/asker.ts";
import { OpenLoop, type Waiting } from "../../bench/open-loop.ts";
import { monotonicUs } from "../../fleet/monotonic.ts";

const ORDER = { perSecond: 2_000, seconds: 0.05 };

describe("an open loop", () => {
  it.each<Waiting>(["spinning", "yielding", "sleeping"])(
    "offers what is due and no more, however it waits: %s",
    async (waiting) => {
      const loop = new OpenLoop();
      const due: number[] = [];
      await loop.run({ ...ORDER, waiting }, (dueUs) => {
        due.push(dueUs);
        setImmediate(() => loop.answered(dueUs));
      });
      expect(due).toHaveLength(ORDER.perSecond * ORDER.seconds);
      const gaps = due.slice(1).map((each, index) => each - (due[index] ?? 0));
      for (const gap of gaps) expect(gap).toBeCloseTo(1e6 / ORDER.perSecond, 3);
      expect(loop.times).toHaveLength(due.length);
      expect(loop.late.every((ms) => ms >= 0)).toBe(true);
    },
  );

  it("counts a time from when the request was due, also when the client was late", async () => {
    const loop = new OpenLoop();
    let isFirst = true;
    await loop.run({ ...ORDER, waiting: "spinning" }, (dueUs) => {
      if (isFirst) {
        isFirst = false;
        const until = monotonicUs() + 20_000;
        while (monotonicUs() < until);
      }
      setImmediate(() => loop.answered(dueUs));
    });
    // Those that were due while the client was busy: the second had waited nearly 20 ms.
    expect(loop.late[1]).toBeGreaterThan(15);
    expect(Math.max(...loop.times)).toBeGreaterThan(19);
  });

  it("ends with the last answer, not with the last request", async () => {
    const loop = new OpenLoop();
    const waiting: number[] = [];
    await loop.run({ ...ORDER, waiting: "yielding" }, (dueUs) => {
      waiting.push(dueUs);
      if (waiting.length < ORDER.perSecond * ORDER.seconds) return;
      setTimeout(() => {
        for (const due of waiting) loop.answered(due);
      }, 5);
    });
    expect(loop.times).toHaveLength(waiting.length);
    expect(loop.times[0]).toBeGreaterThan(40);
  });

  it("tells how many answers were wrong", async () => {
    let asked = 0;
    const asker: Asker = {
      ask: (done) => {
        asked += 1;
        const isRight = asked % 4 !== 0;
        setImmediate(() => done(isRight));
      },
      close: () => {},
    };
    const { wrong, answers } = await askPaced(asker, { ...ORDER, waiting: "spinning" });
    expect([wrong, answers]).toEqual([25, 100]);
  });
});
