/**
 * The load generator: a process of its own, so that drawing tables and starting pods does not
 * delay what is measured. It serves all pods, each at its own pace.
 *
 * It is also the last to leave: when the harness dies without a word, it ends the processes that
 * the harness had started, and itself.
 */
import { RECORDS_MAX } from "./journal.ts";
import { monotonicUs } from "./monotonic.ts";
import { PodTarget } from "./pod-target.ts";

/** What the harness tells the generator. */
export type Order =
  /** Begins to offer checks to a pod. */
  | {
      readonly kind: "target";
      readonly pod: number;
      readonly socket: string;
      readonly perSecond: number;
      /** The bytes of one request. */
      readonly request: string;
    }
  | { readonly kind: "offer"; readonly pod: number; readonly perSecond: number }
  | { readonly kind: "drop"; readonly pod: number }
  /** Processes to end when the harness dies. */
  | { readonly kind: "guard"; readonly pids: readonly number[] }
  /** No more requests; what is unanswered may still come. */
  | { readonly kind: "end" };

/** What the generator tells: records of settled requests, and that there will be no more. */
export type Told =
  | { readonly kind: "records"; readonly records: Float64Array }
  | { readonly kind: "ended" };

const TICK_MS = 1;
const TELL_EVERY_US = 50_000;
/** Answers that take longer than this after the end are given up. */
const LAST_ANSWERS_US = 1_000_000;

/** Runs the generator in this process, which was forked by the harness. */
export function runGenerator(): void {
  const targets = new Map<number, PodTarget>();
  let records: number[] = [];
  let total = 0;
  let pids: readonly number[] = [];
  let toldAtUs = monotonicUs();
  let endAtUs = Number.POSITIVE_INFINITY;

  const settled = (
    pod: number,
    dueUs: number,
    sentUs: number,
    outcome: number,
    source: number,
  ): void => {
    if (total >= RECORDS_MAX) return;
    total += 1;
    records.push(pod, dueUs, sentUs, monotonicUs(), outcome, source);
  };
  const tell = (told: Told): void => {
    process.send?.(told);
  };
  const tellRecords = (): void => {
    if (records.length > 0) tell({ kind: "records", records: Float64Array.from(records) });
    records = [];
  };
  const tick = (): void => {
    const nowUs = monotonicUs();
    const isEnding = endAtUs < Number.POSITIVE_INFINITY;
    let unanswered = 0;
    for (const target of targets.values()) {
      if (!isEnding) target.send(nowUs);
      unanswered += target.unanswered;
    }
    if (nowUs - toldAtUs >= TELL_EVERY_US) {
      tellRecords();
      toldAtUs = nowUs;
    }
    if (isEnding && (unanswered === 0 || nowUs > endAtUs)) finish();
    else setTimeout(tick, TICK_MS);
  };
  const finish = (): void => {
    for (const target of targets.values()) target.drop();
    // Closed connections settle their requests in the next turn of the loop.
    setTimeout(() => {
      tellRecords();
      tell({ kind: "ended" });
    }, 10);
  };

  process.on("message", (order: Order) => {
    switch (order.kind) {
      case "target": {
        const { pod, socket, perSecond, request } = order;
        targets.set(pod, new PodTarget(pod, socket, perSecond, request, settled));
        break;
      }
      case "offer":
        targets.get(order.pod)?.pace.change(monotonicUs(), order.perSecond);
        break;
      case "drop":
        targets.get(order.pod)?.drop();
        targets.delete(order.pod);
        break;
      case "guard":
        pids = order.pids;
        break;
      case "end":
        endAtUs = monotonicUs() + LAST_ANSWERS_US;
        break;
    }
  });
  // Ctrl-C reaches the whole foreground group; the harness says when it is over.
  process.on("SIGINT", () => {});
  process.on("disconnect", () => {
    for (const pid of pids) killQuietly(pid);
    process.exit();
  });
  tick();
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It had ended by itself.
  }
}
