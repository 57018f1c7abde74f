/** One attempt at the store, whose every outcome is a value or a kind of trouble. */
import type { ExchangeTrouble } from "../core/effect.ts";
import type { Batch, BatchReply } from "../core/exchange.ts";
import type { StoreCall, StoreCallReply } from "../core/store-call.ts";
import { type Coordinator, CoordinatorError } from "../ports/coordinator.ts";

/** An error of another class is a fault of the adapter: survived like an answer without sense. */
export function troubleOf(error: unknown): ExchangeTrouble {
  return error instanceof CoordinatorError ? error.kind : "malformed";
}

export async function attemptCall(
  coordinator: Coordinator,
  call: StoreCall,
): Promise<StoreCallReply> {
  return coordinator.call(call);
}

/** `async`, so that a coordinator that throws instead of rejecting is survived as well. */
export async function attempt(coordinator: Coordinator, batch: Batch): Promise<BatchReply> {
  return coordinator.exchange(batch);
}
