/**
 * What the operating system and the language runtime have to say about the end of the process.
 *
 * The first SIGTERM or SIGINT asks for a graceful stop, a second one means that the operator has no
 * patience left. An exception that nobody caught leaves the process in a state that nobody has
 * thought about, so it is logged and ends the process.
 */

/** As much of the log as is needed here. */
export interface EndLog {
  warn(fields: object, message: string): void;
  fatal(fields: object, message: string): void;
}

const SIGNALS = ["SIGTERM", "SIGINT"] as const;

/**
 * A signal so soon after the first is its echo: at a Ctrl-C the terminal signals every process of
 * the job, and a parent like npm passes its own on.
 */
const ECHO_MS = 250;

/** After this, what keeps the event loop alive beyond the end is cut off. */
const LINGER_MS = 500;

/**
 * Listens for the rest of the process's life.
 *
 * @param log - Writes before it returns: the process may end right after.
 * @param stop - Called at the first signal. A further one ends the process with exit code 1.
 * @returns What an unexpected error does: it is logged and ends the process with exit code 1.
 */
export function watchForEnd(log: EndLog, stop: () => void): (error: unknown) => never {
  const crash = (error: unknown): never => {
    log.fatal({ err: error }, "unexpected error");
    process.exit(1);
  };
  let askedAtMs: number | undefined;
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      const now = performance.now();
      askedAtMs ??= now;
      if (now === askedAtMs) stop();
      if (now - askedAtMs < ECHO_MS) return;
      log.warn({ signal }, "a second signal: ended without a drain");
      process.exit(1);
    });
  }
  process.on("uncaughtException", crash);
  process.on("unhandledRejection", crash);
  return crash;
}

/** Listens for the rest of the process's life. @param ask - Called at every SIGHUP. */
export function watchForReload(ask: () => void): void {
  process.on("SIGHUP", ask);
}

/** Sees to it that the process ends, whatever a forgotten handle or a broken connection does. */
export function endSoon(code: number): void {
  // Without a reference of its own: a process that ends by itself does not wait for this.
  setTimeout(() => process.exit(code), LINGER_MS).unref();
}
