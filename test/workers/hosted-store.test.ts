import { describe, expect, it } from "vitest";
import { CoordinatorError, type NamedCoordinator } from "../../src/ports/coordinator.ts";
import { createEmbeddedCoordinator } from "../../src/store/embedded/embedded-coordinator.ts";
import { EmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import { HostedStore } from "../../src/workers/hosted-store.ts";
import type { StoreQuestion } from "../../src/workers/messages.ts";
import { answerFrom } from "../../src/workers/store-host.ts";
import { batchOf, limitOf, ManualClock, MS, replyOf, SECOND } from "../store/pod.ts";

const LIMIT = limitOf({
  name: "api",
  // Maps of overrides hold more than can be sent, and the store does not want them.
  overrides: new Map([["k", limitOf({ name: "api" })]]),
});
const TERMS = { timeoutUs: 5 * SECOND, silentAfterUs: 2_500 * MS, largeCosts: [] };

/** A worker and its primary, with a channel between them that clones as a real one does. */
function workerOf(host: NamedCoordinator, timeoutUs = SECOND) {
  const sent: StoreQuestion[] = [];
  const worker: HostedStore = new HostedStore({
    timeoutUs,
    send: (id, question) => {
      sent.push(question);
      void answerFrom(host, structuredClone(question)).then((answer) =>
        worker.answered(id, structuredClone(answer)),
      );
      return true;
    },
  });
  return { worker, sent };
}

const spend = (seq: number, consumed: number) =>
  batchOf([{ limit: LIMIT, key: "k", fields: { consumed, demand: consumed } }], { seq });

describe("the store of the primary", () => {
  it("adds up what its workers report, each batch once", async () => {
    const store = new EmbeddedStore();
    const clock = new ManualClock();
    const [a, b] = ["p/0", "p/1"].map(
      (id) => workerOf(createEmbeddedCoordinator(store, id, "1", clock)).worker,
    ) as [HostedStore, HostedStore];
    await a.exchange(spend(1, 30));
    expect(replyOf(await b.exchange(spend(1, 20))).level).toBe(50);
    expect(await b.exchange(spend(1, 20))).toMatchObject({ duplicate: true });
    await a.heartbeat(TERMS);
    expect(await b.heartbeat(TERMS)).toMatchObject({ pods: 2 });
    await a.leave();
    expect(await b.heartbeat(TERMS)).toMatchObject({ pods: 1 });
  });

  it("is told limits by their names only", async () => {
    const coordinator = createEmbeddedCoordinator(
      new EmbeddedStore(),
      "p/0",
      "1",
      new ManualClock(),
    );
    const { worker, sent } = workerOf(coordinator);
    await worker.exchange(spend(1, 1));
    const limits = sent.map((question) =>
      question.ask === "exchange" ? question.batch.limits : [],
    );
    expect(limits).toEqual([[{ name: "api" }]]);
  });

  it("passes its trouble on, and a bug of the question as a refusal", async () => {
    const coordinator = createEmbeddedCoordinator(
      new EmbeddedStore(),
      "p/0",
      "1",
      new ManualClock(),
    );
    const { worker } = workerOf(coordinator);
    await expect(worker.exchange({ ...spend(1, 1), lane: 7 })).rejects.toMatchObject({
      kind: "refused",
    });
    await coordinator.close();
    await expect(worker.exchange(spend(1, 1))).rejects.toMatchObject({ kind: "unreachable" });
  });

  it("that does not answer in time has failed, and a late answer is nobody's", async () => {
    let sentId = 0;
    const worker = new HostedStore({
      timeoutUs: 5 * MS,
      send: (id) => {
        sentId = id;
        return true;
      },
    });
    await expect(worker.heartbeat(TERMS)).rejects.toMatchObject({ kind: "timeout" });
    worker.answered(sentId, { told: undefined });
  });

  it("fails what is open when it is closed, and everything after", async () => {
    const worker = new HostedStore({ timeoutUs: SECOND, send: () => true });
    const open = expect(worker.leave()).rejects.toBeInstanceOf(CoordinatorError);
    await worker.close();
    await open;
    await expect(worker.leave()).rejects.toMatchObject({ kind: "unreachable" });
  });

  it("that is gone with its primary is unreachable", async () => {
    const worker = new HostedStore({ timeoutUs: SECOND, send: () => false });
    await expect(worker.heartbeat(TERMS)).rejects.toMatchObject({ kind: "unreachable" });
  });
});
