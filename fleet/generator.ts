/**
 * The load generator: a process of its own, so that drawing tables and starting pods does not
 * delay what is measured. It serves all pods, each at its own pace.
 *
 * It is also the last to leave: when the harness dies without a word, it ends the processes that
 * the harness had started, and itself.
 */
import { RECORDS_MAX } from "./journal.ts";
import { monotonicUs } from "./monotonic.ts";
import { PodTarget, type Settled, type Stream } from "./pod-target.ts";

/** What the harness tells the generator. */
export type Order =
  /** Begins to offer checks to a pod. */
  | {
      readonly kind: "target";
      readonly pod: number;
      readonly socket: string;
      readonly streams: readonly Stream[];
    }
  /** Other rates, in the order of the streams. */
  | { readonly kind: "offer"; readonly pod: number; readonly perSecond: readonly number[] }
  /** No more requests to a pod; what is unanswered may still come. */
  | { readonly kind: "leave"; readonly pod: number }
  | { readonly kind: "drop"; readonly pod: number }
  /** Processes to end when the harness dies. */
  | { readonly kind: "guard"; readonly pids: readonly number[] }
  /** No more requests; what is unanswered may still come. */
  | { readonly kind: "end" };

/** What the generator tells: records of settled requests, and that there will be no more. */
export type Told =
  | { readonly kind: "records"; readonly records: Float64Array }
  /** Why a request failed, of the first ones. */
  | { readonly kind: "failure"; readonly pod: number; readonly why: string }
  /** Nothing more will be sent to that pod. */
  | { readonly kind: "left"; readonly pod: number }
  | { readonly kind: "ended" };

const TICK_MS = 1;
const TELL_EVERY_US = 50_000;
/** Answers that take longer than this after the end are given up. */
const LAST_ANSWERS_US = 1_000_000;
const FAILURES_TOLD_MAX = 20;

/** Runs the generator in this process, which was forked by the harness. */
export function runGenerator(): void {
  const targets = new Map<number, PodTarget>();
  let records: number[] = [];
  let total = 0;
  let failures = 0;
  let pids: readonly number[] = [];
  let toldAtUs = monotonicUs();
  let endAtUs = Number.POSITIVE_INFINITY;

  const settled: Settled = (pod, request, outcome, source, why) => {
    if (why !== undefined && failures < FAILURES_TOLD_MAX) {
      failures += 1;
      tell({ kind: "failure", pod, why });
    }
    if (total >= RECORDS_MAX) return;
    total += 1;
    const { dueUs, sentUs, limit } = request;
    records.push(pod, dueUs, sentUs, monotonicUs(), outcome, source, limit);
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
        const { pod, socket, streams } = order;
        targets.set(pod, new PodTarget(pod, socket, streams, settled));
        break;
      }
      case "offer":
        targets.get(order.pod)?.offer(order.perSecond);
        break;
      case "leave":
        targets.get(order.pod)?.leave();
        tell({ kind: "left", pod: order.pod });
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
