/** What is offered to which pod: the measured limit at its own rate, and the counted one. */
import { checkRequest } from "./check-request.ts";
import { LIMIT } from "./journal.ts";
import type { Load } from "./load.ts";
import type { RunOptions } from "./options.ts";
import { COUNTED_NAME, LIMIT_NAME, type Pod } from "./pod.ts";

/** Keys of the counted limit: enough to lie on every primary of a cluster. */
export const COUNTED_KEYS: readonly string[] = Array.from({ length: 12 }, (_, i) => `key-${i}`);

export class OfferedLoad {
  readonly #load: Load;
  readonly #options: RunOptions;
  #perSecond: number;
  readonly #own: Map<number, number>;

  constructor(load: Load, options: RunOptions) {
    this.#load = load;
    this.#options = options;
    this.#perSecond = options.offered;
    this.#own = new Map(options.hot);
  }

  /** Begins to offer checks to a pod. */
  begin({ number, socket }: Pod): void {
    const { key, counted } = this.#options;
    const measured = [checkRequest(LIMIT_NAME, key)];
    const countedRequests = COUNTED_KEYS.map((each) => checkRequest(COUNTED_NAME, each));
    this.#load.tell({
      kind: "target",
      pod: number,
      socket,
      streams: [
        { limit: LIMIT.measured, perSecond: this.#rateOf(number), requests: measured },
        { limit: LIMIT.counted, perSecond: counted, requests: countedRequests },
      ],
    });
  }

  /**
   * The load of one pod goes to the others in equal parts, until `giveBack`. Resolves when it gets
   * nothing any more.
   */
  async shift(from: Pod, to: readonly Pod[]): Promise<void> {
    const more = this.#rateOf(from.number) / to.length;
    const counted = this.#options.counted * (1 + 1 / to.length);
    for (const { number } of to) this.#tell(number, this.#rateOf(number) + more, counted);
    await this.#load.leave(from.number);
  }

  /** A pod takes the load over that another one had; the rest have their own again. */
  giveBack(from: Pod, to: Pod, rest: readonly Pod[]): void {
    const own = this.#own.get(from.number);
    if (own !== undefined) this.#own.set(to.number, own);
    for (const { number } of rest) this.#tell(number, this.#rateOf(number));
    this.begin(to);
  }

  /** Another rate for all pods, or for one. */
  change(perSecond: number, only: number | undefined, pods: readonly Pod[]): void {
    if (only === undefined) {
      this.#perSecond = perSecond;
      this.#own.clear();
    } else {
      this.#own.set(only, perSecond);
    }
    for (const { number } of pods) {
      if (only === undefined || only === number) this.#tell(number, perSecond);
    }
  }

  #rateOf(pod: number): number {
    return this.#own.get(pod) ?? this.#perSecond;
  }

  #tell(pod: number, perSecond: number, counted: number = this.#options.counted): void {
    this.#load.tell({ kind: "offer", pod, perSecond: [perSecond, counted] });
  }
}
