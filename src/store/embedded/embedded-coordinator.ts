/**
 * The embedded store as a coordinator: for the workers of a pod without Redis, and the other side
 * of the test that compares both stores.
 */
import type { Batch, BatchReply, ByName, Roster } from "../../core/exchange.ts";
import type { StoreCall, StoreCallReply } from "../../core/store-call.ts";
import type { InstantUs } from "../../core/units.ts";
import type { Clock } from "../../ports/clock.ts";
import {
  CoordinatorError,
  type HeartbeatTerms,
  type NamedCoordinator,
} from "../../ports/coordinator.ts";
import { LaneEar } from "../lane-ear.ts";
import type { EmbeddedStore } from "./embedded-store.ts";

/**
 * @param store - Shared by the coordinators of all pods of a fleet in this process.
 * @param clock - Measures this pod's time since a reply, and is the store's own time as well unless
 *   `storeTime` is given.
 */
export function createEmbeddedCoordinator(
  store: EmbeddedStore,
  podId: string,
  incarnation: string,
  clock: Clock,
  storeTime?: () => InstantUs,
): NamedCoordinator {
  const member = `${podId}/${incarnation}`;
  const serverTime = storeTime ?? (() => Math.floor(clock.monotonicUs()) + 1);
  const ear = new LaneEar();
  let closed = false;
  const requireOpen = (): void => {
    if (closed) throw new CoordinatorError("unreachable", "the embedded store is closed");
  };
  return {
    lanes: store.lanes,
    async exchange(batch: ByName<Batch>): Promise<BatchReply> {
      requireOpen();
      const sentAt = clock.monotonicUs();
      const reply = store.reconcile(serverTime(), member, batch);
      if (batch.lane === 0) ear.heard(reply.epoch, reply.nowUs, sentAt);
      return reply;
    },
    async call(call: ByName<StoreCall>): Promise<StoreCallReply> {
      requireOpen();
      const sentAt = clock.monotonicUs();
      const reply = store.call(serverTime(), call);
      if (call.lane === 0) ear.heard(reply.epoch, reply.nowUs, sentAt);
      return reply;
    },
    async heartbeat(terms: HeartbeatTerms): Promise<Roster> {
      requireOpen();
      const sentAt = clock.monotonicUs();
      const told = store.heartbeat(serverTime(), member, terms, ear.at(sentAt));
      const { nowUs, epoch, ...roster } = told;
      ear.heard(epoch, nowUs, sentAt);
      return roster;
    },
    async leave(): Promise<void> {
      requireOpen();
      store.leave(member);
    },
    async close(): Promise<void> {
      closed = true;
    },
  };
}
