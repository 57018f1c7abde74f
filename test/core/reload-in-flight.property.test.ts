/**
 * Configurations that change while checks wait for the store, in every mode and at every moment: in
 * virtual time, because in real time a held check lasts two milliseconds.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Limit } from "../../src/core/limit.ts";
import { limitOf, MS, SECOND, VirtualFleet } from "../support/virtual-fleet.ts";

const MODES = ["hybrid", "leased", "exact", "auto"] as const;
const DECISION_TIMEOUT_US = 10 * MS;

/** Four names; each may be there or not, in any mode, with a small or a large burst. */
const configurations = fc
  .tuple(
    ...["a", "b", "c", "d"].map((name) =>
      fc.option(
        fc
          .record({ mode: fc.constantFrom(...MODES), burst: fc.constantFrom(2, 7, 400) })
          .map(({ mode, burst }) => limitOf({ name, mode, burst, tokens: 3, spanUs: SECOND })),
        { nil: undefined, freq: 3 },
      ),
    ),
  )
  .map((limits) => limits.filter((limit): limit is Limit => limit !== undefined));

const steps = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant("check" as const),
        pod: fc.nat(1),
        names: fc.uniqueArray(fc.nat(3), { minLength: 1, maxLength: 3 }),
        key: fc.constantFrom("k", "l"),
        cost: fc.constantFrom(1, 1, 2, 5),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant("reload" as const), limits: configurations }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant("wait" as const),
        us: fc.constantFrom(300, 1_000, 1_500, 12_000, 150_000),
      }),
    },
  ),
  { minLength: 20, maxLength: 120 },
);

describe("O14 a reload while checks are held", () => {
  it("fails none of them: each is answered in time, whatever was removed or came back", () => {
    fc.assert(
      fc.property(configurations, steps, (first, story) => {
        const fleet = new VirtualFleet({ limits: first, pods: 2, lanes: 2 });
        let inForce = first;
        let open = 0;
        const late: number[] = [];
        for (const step of story) {
          if (step.kind === "wait") fleet.runUntil(fleet.now + step.us);
          if (step.kind === "reload") {
            inForce = step.limits;
            for (const { engine } of fleet.pods) engine.configChanged(fleet.now, inForce);
          }
          const pod = fleet.pods[step.kind === "check" ? step.pod : 0];
          if (step.kind !== "check" || pod === undefined) continue;
          const checks = step.names.flatMap((at) => {
            const limit = inForce[at];
            return limit === undefined ? [] : [{ limit, key: step.key, cost: step.cost }];
          });
          if (checks.length === 0) continue;
          const asked = fleet.now;
          open += 1;
          fleet.check(pod, checks, (decisions) => {
            open -= 1;
            expect(decisions).toHaveLength(checks.length);
            if (fleet.now - asked > DECISION_TIMEOUT_US + MS) late.push(fleet.now - asked);
            // What a front door does for a denied check whose limit charges denials.
            for (const check of checks) pod.engine.report(fleet.now, { ...check, cost: 1 });
          });
        }
        fleet.runUntil(fleet.now + SECOND);
        expect(open).toBe(0);
        expect(late).toEqual([]);
        // Reports of removed limits still went out.
        for (const { engine } of fleet.pods) engine.configChanged(fleet.now, []);
        fleet.runUntil(fleet.now + SECOND);
        for (const { engine } of fleet.pods) engine.beginLeave(fleet.now);
        fleet.runUntil(fleet.now + 2 * SECOND);
        for (const pod of fleet.pods) expect(pod.engine.settled).toBe(true);
      }),
      { numRuns: 300 },
    );
  });
});
