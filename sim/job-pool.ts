/** Does many jobs on a few worker threads and hands on what is done, as it is done. */
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import type { Job, JobDone } from "./job.ts";

/** More threads than this only compete for memory. */
const WORKERS_MAX = 8;

type Message = { readonly done: JobDone } | { readonly error: string };

/**
 * @param onDone - Called in order of completion.
 * @throws {Error} When a run threw: a bug, not a verdict.
 */
export async function doJobs(jobs: readonly Job[], onDone: (done: JobDone) => void): Promise<void> {
  const waiting = [...jobs];
  const threads = Math.min(WORKERS_MAX, availableParallelism(), waiting.length);
  const workers = Array.from({ length: threads }, () => new Worker(workerUrl()));
  try {
    await Promise.all(workers.map((worker) => work(worker, waiting, onDone)));
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
}

/** The worker beside this file, compiled if this file is. */
function workerUrl(): URL {
  const url = new URL("./worker.ts", import.meta.url);
  if (import.meta.url.endsWith(".js")) url.pathname = url.pathname.replace(/\.ts$/, ".js");
  return url;
}

function work(worker: Worker, waiting: Job[], onDone: (done: JobDone) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const next = (): void => {
      const job = waiting.shift();
      if (job === undefined) resolve();
      else worker.postMessage(job);
    };
    worker.on("error", reject);
    worker.on("message", (message: Message) => {
      if ("error" in message) {
        waiting.length = 0;
        reject(new Error(message.error));
        return;
      }
      onDone(message.done);
      next();
    });
    next();
  });
}
