/** Answers what workers ask of the store that the primary holds. */
import { CoordinatorError, type NamedCoordinator } from "../ports/coordinator.ts";
import type { StoreAnswer, StoreQuestion } from "./messages.ts";

/** @param store - The store as one worker sees it. Never rejects for trouble of the store. */
export async function answerFrom(
  store: NamedCoordinator,
  question: StoreQuestion,
): Promise<StoreAnswer> {
  try {
    return { told: await ask(store, question) };
  } catch (error) {
    const trouble = error instanceof CoordinatorError ? error.kind : "refused";
    return { trouble, message: error instanceof Error ? error.message : String(error) };
  }
}

type Told = Extract<StoreAnswer, { told: unknown }>["told"];

async function ask(store: NamedCoordinator, question: StoreQuestion): Promise<Told> {
  switch (question.ask) {
    case "exchange":
      return store.exchange(question.batch);
    case "call":
      return store.call(question.call);
    case "heartbeat":
      return store.heartbeat(question.terms);
    case "leave":
      await store.leave();
      return undefined;
  }
}
