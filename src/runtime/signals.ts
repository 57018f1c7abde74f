/**
 * What the operating system and the language runtime have to say about the end of the process.
 *
 * The first SIGTERM or SIGINT asks for a graceful stop, a second one means that the operator has no
 * patience left. An exception that nobody caught leaves the process in a state that nobody has
 * thought about, so it is logged and ends the process.
 */

export interface EndListener {
  /** The first signal. */
  stop(signal: NodeJS.Signals): void;
  /** A further signal; ends the process at once. */
  abort(signal: NodeJS.Signals): void;
  /** An exception or rejection that nobody handled; ends the process at once. */
  crash(error: unknown): void;
}

const SIGNALS = ["SIGTERM", "SIGINT"] as const;

/** Listens for the life of the process; returns a function that ends it. */
export function watchForEnd(listener: EndListener): () => void {
  let asked = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (asked) listener.abort(signal);
    else {
      asked = true;
      listener.stop(signal);
    }
  };
  const onCrash = (error: unknown): void => listener.crash(error);
  for (const signal of SIGNALS) process.on(signal, onSignal);
  process.on("uncaughtException", onCrash);
  process.on("unhandledRejection", onCrash);
  return () => {
    for (const signal of SIGNALS) process.off(signal, onSignal);
    process.off("uncaughtException", onCrash);
    process.off("unhandledRejection", onCrash);
  };
}
