/**
 * Calls without a reply. One that is older than the command timeout counts as lost: it blocks no
 * other any more and the lane is in doubt. Its reply is used all the same when it comes, for it
 * may bring what has to go back.
 */
import type { OpenCall } from "./call-replies.ts";
import type { Lane } from "./lane.ts";
import { type DurationUs, type InstantUs, US_PER_SECOND } from "./units.ts";

/** Nobody waits longer for the reply of a lost call. */
const LATE_US: DurationUs = 1.5 * US_PER_SECOND;
/** A call is forgotten, and its reply with it; a pod that stood still finds its replies later. */
const OPEN_US: DurationUs = 60 * US_PER_SECOND;

export class OpenCalls {
  readonly #commandTimeoutUs: DurationUs;
  readonly #byId = new Map<number, OpenCall>();

  constructor(commandTimeoutUs: DurationUs) {
    this.#commandTimeoutUs = commandTimeoutUs;
  }

  add(id: number, call: OpenCall): void {
    this.#byId.set(id, call);
  }

  /** The call ended. */
  take(id: number): OpenCall | undefined {
    const call = this.#byId.get(id);
    this.#byId.delete(id);
    return call;
  }

  /** No reply is waited for that could tell something. */
  get isSettled(): boolean {
    for (const call of this.#byId.values()) {
      if (!call.isLost || (call.asked.length > 0 && !call.isGivenUp)) return false;
    }
    return true;
  }

  /** When `expire` has something to do. */
  get wakeAt(): InstantUs {
    let at = Number.POSITIVE_INFINITY;
    for (const call of this.#byId.values()) at = Math.min(at, this.#patienceEnd(call));
    return at;
  }

  /** Calls of a lane that are not lost. */
  countIn(lane: Lane): number {
    let open = 0;
    for (const call of this.#byId.values()) if (call.lane === lane && !call.isLost) open += 1;
    return open;
  }

  /** @param lost - Told of each call that counts as lost from now on. */
  expire(now: InstantUs, lost: (call: OpenCall) => void): void {
    for (const [id, call] of this.#byId) {
      if (!call.isLost && now >= this.#patienceEnd(call)) {
        call.isLost = true;
        lost(call);
      }
      if (call.isLost && now - call.sentAt >= LATE_US) call.isGivenUp = true;
      if (now - call.sentAt > OPEN_US) this.#byId.delete(id);
    }
  }

  /** When a call counts as lost, and when it is given up. */
  #patienceEnd(call: OpenCall): InstantUs {
    if (call.isGivenUp) return Number.POSITIVE_INFINITY;
    if (call.isLost) return call.sentAt + LATE_US;
    return call.sentAt + call.lane.patienceUs(this.#commandTimeoutUs);
  }
}
