/** Clocks, chance, queue and meters of the simulator. */
import { describe, expect, test } from "vitest";
import { EventLoop } from "../../sim/event-loop.ts";
import { HostClock } from "../../sim/host-clock.ts";
import { KeyMeter, MeterBucket } from "../../sim/meter.ts";
import { Prng } from "../../sim/prng.ts";
import { fairness, settlingAfter } from "../../sim/settling.ts";

const SHAPE = { refill: 1, period: 10_000, tickUs: 1, burst: 100, maxDebt: 200 }; // 100/s

describe("chance", () => {
  test("a fork depends on the seed and the purpose, not on draws made before", () => {
    const parent = new Prng(5);
    const before = parent.fork("network").draw();
    parent.draw();
    expect(parent.fork("network").draw()).toBe(before);
    expect(parent.fork("workload").draw()).not.toBe(before);
    expect(new Prng(6).fork("network").draw()).not.toBe(before);
  });

  test("draws are uniform: mean, extremes and neighbours look like chance", () => {
    const random = new Prng(1);
    let [sum, product, last, min, max] = [0, 0, 0.5, 1, 0];
    const count = 100_000;
    for (let i = 0; i < count; i += 1) {
      const draw = random.draw();
      sum += draw;
      product += (draw - 0.5) * (last - 0.5);
      [last, min, max] = [draw, Math.min(min, draw), Math.max(max, draw)];
    }
    expect(sum / count).toBeCloseTo(0.5, 2);
    expect(product / count).toBeCloseTo(0, 2);
    expect(min).toBeLessThan(0.001);
    expect(max).toBeGreaterThan(0.999);
    expect(max).toBeLessThan(1);
  });
});

describe("the event loop", () => {
  test("runs events by instant and, at one instant, in the order of scheduling", async () => {
    const loop = new EventLoop();
    const order: string[] = [];
    loop.at(20, () => order.push("c"));
    loop.at(10, () => order.push("a"));
    loop.at(20, () => order.push("d"));
    loop.at(10, () => {
      order.push("b");
      loop.after(0, () => order.push("b2"));
    });
    await loop.run(20);
    expect(order).toEqual(["a", "b", "b2", "c", "d"]);
  });

  test("virtual time stands still while an event waits for a real server", async () => {
    const loop = new EventLoop();
    const order: string[] = [];
    loop.at(1, () =>
      loop.block(
        new Promise((resolve) => setImmediate(resolve)).then(() => void order.push("real")),
      ),
    );
    loop.at(2, () => order.push("next"));
    await loop.run(5);
    expect(order).toEqual(["real", "next"]);
    expect(loop.nowUs).toBe(5);
  });

  test("a cancelled event does not run", async () => {
    const loop = new EventLoop();
    let ran = false;
    loop.cancel(
      loop.at(1, () => {
        ran = true;
      }),
    );
    await loop.run(5);
    expect(ran).toBe(false);
  });
});

describe("a pod's clock", () => {
  test("drifts, stands still, and never goes back", () => {
    const clock = new HostClock(0, 1_000);
    expect(clock.at(100)).toBe(1_100);
    clock.setRate(100, 1.5);
    expect(clock.at(200)).toBe(1_250);
    clock.stop(200);
    expect(clock.at(900)).toBe(1_250);
    clock.resume(900);
    expect(clock.at(1_000)).toBe(1_400);
    expect(clock.trueDelay(150)).toBe(100);
  });
});

describe("the meter", () => {
  test("the virtual bucket's largest debt is the over-admission of the worst span", () => {
    const meter = new KeyMeter(SHAPE, 0);
    for (let i = 0; i < 130; i += 1) meter.admitted(0, 1);
    expect(meter.excess).toBe(30);
    meter.admitted(100_000, 5); // 10 tokens came back meanwhile
    expect(meter.excess).toBe(30);
    meter.admitted(100_000, 10);
    expect(meter.excess).toBe(35);
    expect(meter.spanMaxima[0]).toBe(130);
    expect(meter.spanMaxima[1]).toBe(145);
  });

  test("the mean of the debt is its area over time", () => {
    const bucket = new MeterBucket(SHAPE, 0);
    bucket.take(0, 150); // 50 of debt, paid in 0.5 s
    expect(bucket.debt(2_000_000)).toBe(0);
    expect(bucket.debtArea / 2_000_000).toBeCloseTo((50 * 0.5) / 2 / 2, 9);
  });

  test("other numbers scale a level and keep a debt", () => {
    const bucket = new MeterBucket(SHAPE, 0);
    bucket.take(0, 50);
    bucket.reshape(0, { ...SHAPE, burst: 10 });
    expect(bucket.holds(0, 5)).toBe(true);
    expect(bucket.holds(0, 6)).toBe(false);
    bucket.take(0, 12);
    expect(bucket.debt(0)).toBe(7);
    bucket.reshape(0, SHAPE);
    expect(bucket.debt(0)).toBe(7);
  });
});

describe("dynamics", () => {
  test("the settling time ends where the rate stays within 5 % for good", () => {
    const ideal = new Array<number>(100).fill(100);
    const admitted = ideal.map((tokens, i) => (i >= 20 && i < 30 ? 0 : tokens));
    const settling = settlingAfter({ name: "cut", atUs: 2_000_000 }, 10_000_000, admitted, ideal);
    expect(settling.settledAfterUs).toBeGreaterThanOrEqual(1_000_000);
    expect(settling.settledAfterUs).toBeLessThanOrEqual(1_500_000);
    expect(settling.late).toBe(1_000);
    const never = settlingAfter(
      { name: "cut", atUs: 0 },
      10_000_000,
      admitted.map(() => 0),
      ideal,
    );
    expect(never.settledAfterUs).toBe(Number.POSITIVE_INFINITY);
  });

  test("Jain's index is 1 for equals and 1/n when one gets all", () => {
    const party = (admitted: number) => ({ offered: 10, admitted });
    expect(fairness([party(5), party(5)]).jain).toBe(1);
    expect(fairness([party(8), party(0), party(0), party(0)]).jain).toBeCloseTo(0.25, 9);
    expect(fairness([]).jain).toBe(1);
  });
});
