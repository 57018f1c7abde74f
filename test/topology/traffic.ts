/**
 * Checks offered to several sidecars at a steady rate until told to stop, with everything that came
 * back: what a test needs while something happens to the Redis behind them.
 */
import type { Sidecar, Verdict } from "../support/sidecar.ts";

export interface Offer {
  readonly limit: string;
  readonly keys: readonly string[];
  /** Checks per second for each sidecar, the keys taking turns. */
  readonly perSecond: number;
}

export interface Answered {
  /** Since the traffic began. */
  readonly atMs: number;
  readonly tookMs: number;
  readonly verdict: Verdict;
}

/** How often the traffic catches up with its schedule. */
const STEP_MS = 5;

export class Traffic {
  readonly answers: Answered[] = [];
  /** Errors that reached a caller. */
  readonly failures: string[] = [];
  private readonly startedAtMs = performance.now();
  private readonly asked = new Set<Promise<void>>();
  private readonly sidecars: readonly Sidecar[];
  private readonly offer: Offer;
  private readonly running: Promise<void>;
  private stopped = false;

  constructor(sidecars: readonly Sidecar[], offer: Offer) {
    this.sidecars = sidecars;
    this.offer = offer;
    this.running = this.run();
  }

  get allowed(): number {
    return this.answers.filter(({ verdict }) => verdict.allowed).length;
  }

  /** Since the traffic began. */
  get atMs(): number {
    return performance.now() - this.startedAtMs;
  }

  /** Allowed checks answered between two instants. */
  allowedBetween(fromMs: number, toMs: number): number {
    return this.answers.filter(
      ({ atMs, verdict }) => verdict.allowed && atMs >= fromMs && atMs < toMs,
    ).length;
  }

  async during(forMs: number): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, forMs));
  }

  /** Stops, and resolves when every answer is there. */
  async stop(): Promise<void> {
    this.stopped = true;
    await this.running;
    await Promise.all(this.asked);
  }

  private async run(): Promise<void> {
    for (let offered = 0; !this.stopped; ) {
      const due = Math.floor((this.atMs / 1_000) * this.offer.perSecond) + 1;
      for (; offered < due; offered += 1) {
        for (const sidecar of this.sidecars) this.ask(sidecar, offered);
      }
      await new Promise((resolve) => setTimeout(resolve, STEP_MS));
    }
  }

  private ask(sidecar: Sidecar, number: number): void {
    const { limit, keys } = this.offer;
    const asked = sidecar
      .ask(limit, keys[number % keys.length] as string)
      .then((answer) => {
        if (answer.status !== 200) throw new Error(`status ${answer.status}: ${answer.body}`);
        const verdict = JSON.parse(answer.body) as Verdict;
        this.answers.push({ atMs: this.atMs, tookMs: answer.tookMs, verdict });
      })
      .catch((error: unknown) => {
        this.failures.push(String(error));
      })
      .finally(() => this.asked.delete(asked));
    this.asked.add(asked);
  }
}
