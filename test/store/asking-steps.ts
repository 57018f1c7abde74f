/** Steps of the model test that decide in the store: takes, leases, and what their pods may say. */
import fc from "fast-check";
import type { Limit } from "../../src/core/limit.ts";
import { type Asked, type LeaseFields, leases, type TakeFields, takes } from "./asking.ts";
import type { BothStores } from "./both-stores.ts";
import { MS } from "./pod.ts";

const LEASE_SLOT = 500 * MS;

const costs = fc.oneof(
  { weight: 8, arbitrary: fc.nat(20) },
  { weight: 1, arbitrary: fc.constantFrom(200, 5_000, 1e9, 2 ** 52) },
);
const runs = fc.array(fc.tuple(costs, fc.constantFrom(0, 1, 2, 10_000)), { maxLength: 5 });

/** How long before the last reply a take was, us: young, on the edge, old, of the future. */
const ages = fc.constantFrom(-1, 0, 50 * MS, 100 * MS, 100 * MS + 1, 300 * MS, 10_000 * MS);

/** How long after the last reply a bucket is full at the earliest, us; 0 for not known. */
export const fullAfterUs: fc.Arbitrary<number> = fc.oneof(
  { weight: 2, arbitrary: fc.constant(0) },
  { weight: 3, arbitrary: fc.constantFrom(1, 100 * MS, 3_000 * MS, 60_000 * MS, 3_600_000 * MS) },
);

interface DrawnTake extends Omit<TakeFields, "takenAt"> {
  readonly ageUs: number;
}

interface DrawnLease extends Omit<LeaseFields, "repliedAt" | "reports"> {
  readonly heard: boolean;
  readonly reports: readonly { slot: number; spent: number; returned: number }[];
}

const takeFields: fc.Arbitrary<DrawnTake> = fc.record({
  demand: fc.nat(50),
  fullAt: fullAfterUs,
  giveBack: fc.oneof({ weight: 2, arbitrary: fc.constant(0) }, { arbitrary: costs, weight: 1 }),
  ageUs: ages,
  lost: fc.constantFrom(0, 0, 0.1),
  runs,
});

/** Reports for slots that are out, over, not yet there, or never were. */
const reports = fc.array(
  fc.record({
    slot: fc.oneof(
      { weight: 6, arbitrary: fc.integer({ min: 0, max: 4 }) },
      { weight: 1, arbitrary: fc.constantFrom(-7, 8, 1e6, -1e15) },
    ),
    spent: fc.oneof(fc.nat(30), fc.constantFrom(-5, 1e6)),
    returned: fc.oneof(fc.nat(30), fc.constantFrom(-5, 1e6)),
  }),
  { maxLength: 4 },
);

const leaseFields: fc.Arbitrary<DrawnLease> = fc.record({
  demand: fc.nat(50),
  fullAt: fullAfterUs,
  need: fc.oneof(fc.constant(0), costs),
  unit: fc.nat(5),
  want: fc.oneof(fc.constant(0), costs),
  elapsedSeconds: fc.constantFrom(-1, 0, 0.05, 0.3, 5),
  ownDemand: fc.double({ min: 0, max: 100, noNaN: true }),
  heard: fc.boolean(),
  cycleSeconds: fc.constantFrom(0.01, 0.05),
  low: fc.nat(30),
  lost: fc.constantFrom(0, 0, 0.1),
  reports,
});

/** One step for up to six keys of a lane; `item` draws limit and key index. */
interface DrawnItem {
  readonly limit: Limit;
  readonly key: number;
}

export interface AskingStep {
  readonly op: "ask";
  readonly pod: string;
  readonly incarnation: string;
  readonly lane: number;
  readonly kind: "take" | "lease";
  readonly items: readonly {
    readonly item: DrawnItem;
    readonly take: DrawnTake;
    readonly lease: DrawnLease;
  }[];
  readonly hold: number;
  /** The pod has heard nothing yet. */
  readonly first: boolean;
}

/** One step for up to six keys of a lane; `item` draws limit and key index. */
export function askingStep(
  item: fc.Arbitrary<DrawnItem>,
  common: {
    readonly pod: fc.Arbitrary<string>;
    readonly incarnation: fc.Arbitrary<string>;
    readonly lane: fc.Arbitrary<number>;
  },
): fc.Arbitrary<AskingStep> {
  return fc.record({
    op: fc.constant("ask" as const),
    ...common,
    kind: fc.constantFrom("take" as const, "lease" as const),
    items: fc.uniqueArray(fc.record({ item, take: takeFields, lease: leaseFields }), {
      maxLength: 6,
      selector: ({ item: { limit, key } }) => `${limit.name} ${key}`,
    }),
    hold: fc.constantFrom(0, 0, 0.27),
    first: fc.constantFrom(false, false, false, true),
  });
}

export async function ask(
  both: BothStores,
  step: AskingStep,
  keyOf: (lane: number, index: number) => string,
): Promise<void> {
  const { pod, incarnation, lane, kind, items } = step;
  const named = items.map(({ item, ...rest }) => ({
    limit: item.limit,
    key: keyOf(lane, item.key),
    ...rest,
  }));
  await both.call(
    pod,
    incarnation,
    lane,
    (heardAtUs) =>
      kind === "take"
        ? takes(named.map(({ limit, key, take }) => takeItem(limit, key, take, heardAtUs)))
        : leases(named.map(({ limit, key, lease }) => leaseItem(limit, key, lease, heardAtUs))),
    step,
  );
}

function takeItem(
  limit: Limit,
  key: string,
  { ageUs, fullAt = 0, ...fields }: DrawnTake,
  heardAtUs: number,
): Asked<TakeFields> {
  const takenAt = Math.max(0, heardAtUs - ageUs);
  return { limit, key, fields: { ...fields, takenAt, fullAt: fullAt && heardAtUs + fullAt } };
}

function leaseItem(
  limit: Limit,
  key: string,
  { heard, reports: told, fullAt = 0, ...fields }: DrawnLease,
  heardAtUs: number,
): Asked<LeaseFields> {
  const slotNow = Math.floor(heardAtUs / LEASE_SLOT);
  return {
    limit,
    key,
    fields: {
      ...fields,
      fullAt: fullAt && heardAtUs + fullAt,
      repliedAt: heard ? heardAtUs : 0,
      reports: told.map(({ slot, spent, returned }) => [slotNow + slot, spent, returned] as const),
    },
  };
}
