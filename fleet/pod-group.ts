/** The sidecars of a run: those that live, and what became of the others. */
import { Pod, type PodOptions, type PodStatus, type PodTimes } from "./pod.ts";

const COUNTED_WITHIN_MS = 10_000;
const STOP_WITHIN_MS = 3_000;
const POLL_MS = 50;

export class PodGroup {
  /** Living pods, the oldest first. */
  readonly pods: Pod[] = [];
  podsMost = 0;
  readonly #options: Omit<PodOptions, "number">;
  readonly #processes = new Set<Pod>();
  readonly #onChange: () => void;
  readonly #onFailure: (error: Error) => void;
  #started = 0;
  #isStopping = false;

  /**
   * @param onChange - Told when there are other processes than before.
   * @param onFailure - Told when a pod ends that was not told to, or badly.
   */
  constructor(
    options: Omit<PodOptions, "number">,
    onChange: () => void,
    onFailure: (error: Error) => void,
  ) {
    this.#options = options;
    this.#onChange = onChange;
    this.#onFailure = onFailure;
  }

  get pids(): readonly (number | undefined)[] {
    return [...this.#processes].map(({ pid }) => pid);
  }

  /** Starts pods and resolves when they are ready. @throws {Error} With their last words. */
  async start(count: number): Promise<Pod[]> {
    const starts = Array.from({ length: count }, () => {
      this.#started += 1;
      const options = { ...this.#options, number: this.#started };
      return Pod.start(options, (pod) => this.#spawned(pod));
    });
    const pods = await Promise.all(starts);
    this.pods.push(...pods);
    this.pods.sort((a, b) => a.number - b.number);
    this.podsMost = Math.max(this.podsMost, this.pods.length);
    return pods;
  }

  /** Forgets a pod, which is about to be ended. */
  remove(pod: Pod): void {
    this.pods.splice(this.pods.indexOf(pod), 1);
  }

  /** Asks a pod to stop and resolves when it has. */
  async terminate(pod: Pod): Promise<void> {
    pod.signal("SIGTERM");
    const code = await pod.exited;
    if (code === 0 || this.#isStopping) return;
    this.#onFailure(new Error(`${pod.name} ended with ${code}:\n${pod.output}`));
  }

  /** The first pod to start knows of no other for a heartbeat; that is not what a run measures. */
  async untilCounted(): Promise<void> {
    const deadline = performance.now() + COUNTED_WITHIN_MS;
    for (;;) {
      const statuses = await Promise.all(this.pods.map((pod) => pod.status()));
      if (statuses.every((status) => status?.livePods === this.pods.length)) return;
      if (performance.now() > deadline) {
        const counts = statuses.map((status) => status?.livePods ?? "?").join(", ");
        throw new Error(`${this.pods.length} pods were started, but they count ${counts}`);
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  /** What each living pod says, by number; undefined from one that does not answer in time. */
  async statuses(): Promise<ReadonlyMap<number, PodStatus | undefined>> {
    const told = this.pods.map(async (pod) => [pod.number, await pod.status()] as const);
    return new Map(await Promise.all(told));
  }

  /** Of the living pods. */
  times(): Promise<PodTimes[]> {
    return Promise.all(this.pods.map((pod) => pod.times()));
  }

  /** Ends all. Never throws; safe to call again. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    const pods = [...this.#processes];
    for (const pod of pods) pod.signal("SIGTERM");
    const late = setTimeout(() => {
      for (const pod of pods) if (pod.isRunning) pod.signal("SIGKILL");
    }, STOP_WITHIN_MS);
    await Promise.all(pods.map(({ exited }) => exited));
    clearTimeout(late);
  }

  #spawned(pod: Pod): void {
    this.#processes.add(pod);
    this.#onChange();
    // A pod that was being spawned while the run was given up.
    if (this.#isStopping) pod.signal("SIGKILL");
    void pod.exited.then(() => {
      this.#processes.delete(pod);
      if (this.#isStopping || !this.pods.includes(pod)) return;
      this.#onFailure(new Error(`${pod.name} ended by itself:\n${pod.output}`));
    });
  }
}
