/**
 * The running sidecar, as the command line starts it: one process, or a primary with its workers.
 */
import type { Config } from "./config/config.ts";
import type { Reading } from "./config/reading.ts";
import type { Daemon, DaemonIo } from "./daemon-io.ts";
import { DecidingProcess, type Seat } from "./deciding-process.ts";
import { endSoon } from "./runtime/signals.ts";
import { loadRedisClient } from "./store/redis/load-client.ts";

/**
 * Starts a sidecar, of one process or several, and resolves when it is ready. Redis absent is not
 * an error.
 *
 * The sidecar takes over the process: it listens for signals, and a second signal or an unexpected
 * error ends the process at once with exit code 1.
 *
 * @throws {Error} When a listener cannot be bound or a secret cannot be read; the message is a
 *   sentence for the operator.
 */
export async function startSidecar(config: Config, io: DaemonIo): Promise<Daemon> {
  if (config.workers === 1) return startDaemon(config, io, undefined);
  const { startPrimary } = await import("./primary.ts");
  return startPrimary(config, io);
}

/** Runs this process as a worker of the one that started it; resolves with the exit code. */
export async function serveAsWorker(io: Omit<DaemonIo, "reading">): Promise<number> {
  const { WorkerSeat: Seats } = await import("./workers/worker-seat.ts");
  const seat: Seat = await Seats.taken();
  const [first, ...later] = seat.begin.texts.map((texts) => io.reader.readingOf(texts));
  const config = first?.load().config;
  try {
    if (first === undefined || config === undefined) throw new Error("there is no configuration");
    const daemon = await startDaemon(config, { ...io, reading: first }, { seat, later });
    return await daemon.finished;
  } catch (error) {
    await seat.fail(error instanceof Error ? error.message : String(error));
    return 1;
  }
}

/** @param place - Of a worker; undefined for a process that is the whole sidecar. */
async function startDaemon(
  config: Config,
  io: DaemonIo,
  place: Place | undefined,
): Promise<Daemon> {
  try {
    const connect = config.redis === undefined ? undefined : await loadRedisClient();
    const run = new DecidingProcess(config, io, { connect, seat: place?.seat });
    for (const reading of place?.later ?? []) run.configure(reading);
    await run.open();
    await run.join();
    return { finished: run.finish() };
  } catch (error) {
    endSoon(1);
    throw error;
  }
}

interface Place {
  readonly seat: Seat;
  /** What was put in force since the start of the primary. */
  readonly later: readonly Reading[];
}
