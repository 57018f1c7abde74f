/** Sorts the errors of the client into the four kinds of trouble that the engine knows. */
import { CoordinatorError } from "../../ports/coordinator.ts";

/** How the client words a lost connection; its advice about options is none for our users. */
const LOST = /max retries per request|Stream isn't writeable|Connection is closed/;

/**
 * An error that the server sent is `refused`; everything else that ends a command is a connection
 * that is not there, `unreachable`.
 */
export function classify(error: unknown): CoordinatorError {
  if (error instanceof CoordinatorError) return error;
  const message = messageOf(error);
  if (!(error instanceof Error) || error.name !== "ReplyError") {
    const plain = LOST.test(message) ? "the connection to Redis was lost" : message;
    return new CoordinatorError("unreachable", plain, { cause: error });
  }
  const advice = /\b(?:MOVED|CROSSSLOT|ASK) /.test(message)
    ? "; the server is part of a Redis Cluster, which redis.cluster in the configuration is for"
    : "";
  return new CoordinatorError("refused", `Redis refused the script: ${message}${advice}`, {
    cause: error,
  });
}

/** What an error says; a connect to several addresses at once fails with an empty message. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.message !== "") return error.message;
  return "code" in error ? String(error.code) : error.name;
}
