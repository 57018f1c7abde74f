/**
 * Virtual time: one queue of events, ordered by instant and, at one instant, by when they were
 * scheduled. Nothing else moves time, so a run depends on its seed alone.
 *
 * Events are synchronous. Only an event that has to ask a real server may hand a promise to
 * `block`; virtual time then stands still until it is settled.
 */
import type { DurationUs, InstantUs } from "../src/core/units.ts";

/** A handle with which an event can be taken back. */
export interface Timer {
  /** Undefined once the event has run or was cancelled. */
  run: (() => void) | undefined;
}

interface Entry extends Timer {
  readonly atUs: InstantUs;
  readonly order: number;
}

/** More events at once than this is a leak of the simulator, never a scenario. */
const EVENTS_MAX = 5_000_000;

export class EventLoop {
  #nowUs: InstantUs = 0;
  #order = 0;
  readonly #heap: Entry[] = [];
  #blocking: Promise<void> | undefined;
  /** Called after every event; the place for invariants. */
  afterEvent: ((nowUs: InstantUs) => void) | undefined;

  /** True time of the world, us since the run began. */
  get nowUs(): InstantUs {
    return this.#nowUs;
  }

  /** Events run so far. */
  events = 0;

  /** Runs `run` at `atUs`, or now when that has passed. */
  at(atUs: InstantUs, run: () => void): Timer {
    if (this.#heap.length >= EVENTS_MAX) throw new Error(`more than ${EVENTS_MAX} events are due`);
    const entry: Entry = { atUs: Math.max(atUs, this.#nowUs), order: this.#order, run };
    this.#order += 1;
    push(this.#heap, entry);
    return entry;
  }

  after(delayUs: DurationUs, run: () => void): Timer {
    return this.at(this.#nowUs + delayUs, run);
  }

  cancel(timer: Timer): void {
    timer.run = undefined;
  }

  /** Holds virtual time until `work` is settled. Only from within an event; one at a time. */
  block(work: Promise<void>): void {
    if (this.#blocking !== undefined) throw new Error("an event may block virtual time only once");
    this.#blocking = work;
  }

  /** Runs all events up to and including `untilUs`. */
  async run(untilUs: InstantUs): Promise<void> {
    for (;;) {
      const next = this.#heap[0];
      if (next === undefined || next.atUs > untilUs) break;
      pop(this.#heap);
      const { run } = next;
      if (run === undefined) continue;
      next.run = undefined;
      this.#nowUs = next.atUs;
      this.events += 1;
      run();
      if (this.#blocking !== undefined) {
        const work = this.#blocking;
        await work;
        this.#blocking = undefined;
      }
      this.afterEvent?.(this.#nowUs);
    }
    this.#nowUs = Math.max(this.#nowUs, untilUs);
  }
}

function before(a: Entry, b: Entry): boolean {
  return a.atUs < b.atUs || (a.atUs === b.atUs && a.order < b.order);
}

function push(heap: Entry[], entry: Entry): void {
  let hole = heap.length;
  heap.push(entry);
  while (hole > 0) {
    const parentAt = (hole - 1) >> 1;
    const parent = heap[parentAt] as Entry;
    if (!before(entry, parent)) break;
    heap[hole] = parent;
    hole = parentAt;
  }
  heap[hole] = entry;
}

function pop(heap: Entry[]): void {
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return;
  let hole = 0;
  for (;;) {
    let childAt = 2 * hole + 1;
    if (childAt >= heap.length) break;
    const right = heap[childAt + 1];
    if (right !== undefined && before(right, heap[childAt] as Entry)) childAt += 1;
    const child = heap[childAt] as Entry;
    if (!before(child, last)) break;
    heap[hole] = child;
    hole = childAt;
  }
  heap[hole] = last;
}
