/**
 * The host that the store runs on: it can be slow, refuse, hang, lose its state, come back with an
 * older state, and have its clock moved. What the store computes is the scheme's business.
 */
import type { DurationUs, InstantUs } from "../src/core/units.ts";
import type { EventLoop } from "./event-loop.ts";
import type { Restore, StoreProgram } from "./scheme.ts";

/** Where the store's clock stands when a run begins: an ordinary date, far from zero. */
const CLOCK_START_US = 1_750_000_000_000_000;

export type Served<Reply> = { readonly refused: true } | { readonly reply: Reply };

export class StoreHost {
  readonly #loop: EventLoop;
  readonly #program: StoreProgram;
  #clockOffsetUs = CLOCK_START_US;
  #refusing = 0;
  #hanging = 0;
  #slowUs: DurationUs = 0;

  constructor(loop: EventLoop, program: StoreProgram) {
    this.#loop = loop;
    this.#program = program;
  }

  /** The store's own clock, as TIME would tell it. */
  get clockUs(): InstantUs {
    return this.#loop.nowUs + this.#clockOffsetUs;
  }

  /** Can be reached and answers. */
  get up(): boolean {
    return this.#refusing === 0 && this.#hanging === 0;
  }

  /** Runs one request that has arrived and hands on the reply; a hanging host never does. */
  serve<Reply>(
    run: (storeNowUs: InstantUs) => Reply | Promise<Reply>,
    served: (outcome: Served<Reply>) => void,
  ): void {
    if (this.#hanging > 0) return;
    if (this.#refusing > 0) {
      served({ refused: true });
      return;
    }
    if (this.#slowUs > 0) {
      this.#loop.after(this.#slowUs, () => this.#run(run, served));
      return;
    }
    this.#run(run, served);
  }

  goDown(how: "refuse" | "hang"): void {
    if (how === "refuse") this.#refusing += 1;
    else this.#hanging += 1;
  }

  comeUp(how: "refuse" | "hang"): void {
    if (how === "refuse") this.#refusing = Math.max(0, this.#refusing - 1);
    else this.#hanging = Math.max(0, this.#hanging - 1);
  }

  slowDown(byUs: DurationUs): void {
    this.#slowUs = byUs;
  }

  stepClock(byUs: number): void {
    this.#clockOffsetUs += byUs;
  }

  /**
   * Copies the state now and puts it back after `lagUs`, as a failover to that old a replica does.
   */
  failOverAfter(lagUs: DurationUs, failingOver: () => void): void {
    const copy = this.#program.snapshot();
    const later = (restore: Restore): void => {
      this.#loop.after(lagUs, () => {
        failingOver();
        this.#await(restore());
      });
    };
    if (copy instanceof Promise) this.#loop.block(copy.then(later));
    else later(copy);
  }

  empty(): void {
    this.#await(this.#program.clear());
  }

  #run<Reply>(
    run: (storeNowUs: InstantUs) => Reply | Promise<Reply>,
    served: (outcome: Served<Reply>) => void,
  ): void {
    const reply = run(this.clockUs);
    if (reply instanceof Promise) {
      this.#loop.block(reply.then((settled) => served({ reply: settled })));
    } else {
      served({ reply });
    }
  }

  #await(work: void | Promise<void>): void {
    if (work instanceof Promise) this.#loop.block(work);
  }
}
