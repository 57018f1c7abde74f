/** A worker thread that does jobs one after another. */
import { parentPort } from "node:worker_threads";
import { doJob, type Job } from "./job.ts";

const port = parentPort;
if (port === null) throw new Error("worker.ts runs only as a worker thread");

port.on("message", (job: Job) => {
  doJob(job).then(
    (done) => port.postMessage({ done }),
    (error: unknown) => port.postMessage({ error: describe(error) }),
  );
});

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? "" : `\n${describe(error.cause)}`;
  return `${error.stack ?? error.message}${cause}`;
}
