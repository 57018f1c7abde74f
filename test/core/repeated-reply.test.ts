/**
 * A batch whose reply was lost is sent again; the store answers that it had applied it before. The
 * stock that the batch registered stands in the ledger slot of the *first* application. A pod that
 * takes the second answer's time for it later gives the stock back to the wrong slot, where it
 * cancels the stock of other pods: more is handed out than there is. Found by `npm run sim --
 * --scenario loss-10 --seed 1`, which breaks I3.
 */
import { expect, test } from "vitest";
import { type Batch, ENTRY } from "../../src/core/exchange.ts";
import { defineLimit } from "../../src/core/limit.ts";
import { PodLimiter } from "../../src/core/pod-limiter.ts";
import { EmbeddedStore } from "../../src/store/embedded/embedded-store.ts";

const STORE_START_US = 1_750_000_000_000_000;
const LIMIT = defineLimit({
  name: "api",
  tokens: 1000,
  spanUs: 1_000_000,
  burst: 1000,
  intervalUs: 100_000,
  fallback: { policy: "local", margin: 0.9, maxPods: 20 },
});

test("stock is given back to the ledger slot in which it was registered", () => {
  const store = new EmbeddedStore();
  const engine = new PodLimiter(
    {
      limits: [LIMIT],
      sole: false,
      lanes: 1,
      commandTimeoutUs: 50_000,
      decisionTimeoutUs: 10_000,
      keysMax: 100,
      podId: "pod",
    },
    0,
  );
  engine.membershipChanged(0, { pods: 2, silent: 0 });
  const spend = (nowUs: number): void => {
    for (let i = 0; i < 20; i += 1) engine.decide(nowUs, [{ limit: LIMIT, key: "k", cost: 1 }]);
  };
  /** The next batch that the engine wants to send, while requests go on. */
  const nextBatch = (fromUs: number): { batch: Batch; atUs: number } => {
    for (let atUs = fromUs; atUs < fromUs + 1_000_000; atUs += 1_000) {
      if (atUs % 20_000 === 0) spend(atUs);
      if (engine.wakeAt > atUs) continue;
      for (const effect of engine.tick(atUs, () => 0.5)) {
        if (effect.kind === "exchange") return { batch: effect.batch, atUs };
      }
    }
    throw new Error("the engine sent nothing for a second");
  };

  // The pod is granted stock, and heard about it.
  const first = nextBatch(0);
  const granted = store.reconcile(STORE_START_US + first.atUs, "pod/1", first.batch);
  engine.replied(first.atUs + 2_000, 0, first.batch.seq, granted);

  // The second batch arrives within the first slot of 300 ms, its reply is lost.
  const second = nextBatch(first.atUs + 2_000);
  const appliedAtUs = store.reconcile(STORE_START_US + second.atUs, "pod/1", second.batch).nowUs;
  engine.failed(second.atUs + 50_000, 0, second.batch.seq, "timeout");

  // It is sent again, and answered in the second slot.
  const again = nextBatch(second.atUs + 50_000);
  expect(again.batch.seq).toBe(second.batch.seq);
  const repeated = store.reconcile(STORE_START_US + 450_000, "pod/1", again.batch);
  expect(repeated.duplicate).toBe(true);
  engine.replied(450_000, 0, again.batch.seq, repeated);

  // What the next report takes back must not be looked for in a later slot than it was put into.
  const third = nextBatch(450_000);
  const takenBack = third.batch.entries[ENTRY.registered] ?? 0;
  const lookedForAtUs = third.batch.entries[ENTRY.repliedAt] ?? 0;
  expect(takenBack === 0 || lookedForAtUs <= appliedAtUs).toBe(true);
});
