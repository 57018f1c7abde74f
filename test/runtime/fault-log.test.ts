import { expect, it } from "vitest";
import { FaultLog } from "../../src/runtime/fault-log.ts";

it("a flood of faults is one line a second that tells how many there were", () => {
  let now = 0;
  const lines: object[] = [];
  const log = new FaultLog({ monotonicUs: () => now }, (fields) => lines.push(fields));
  const bug = new Error("bug");
  for (let ms = 0; ms <= 2_000; ms += 1) {
    now = ms * 1_000;
    log.note(bug);
  }
  expect(lines).toEqual([
    { err: bug, faults: 1 },
    { err: bug, faults: 1_000 },
    { err: bug, faults: 1_000 },
  ]);
});
