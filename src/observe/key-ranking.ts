/**
 * Which keys are asked for most, and which are denied most, told from samples.
 *
 * Every decision is looked at while there are few; beyond about a thousand a second only one in
 * `sampledEvery`, which counts for all of them. So a decision costs a subtraction and a comparison,
 * and what a sample costs is bounded. The gaps between samples are drawn from a fixed sequence: a
 * constant one could fall in step with the traffic and see the same key always.
 */
import type { Check, Decision } from "../core/decision.ts";
import type { Limit } from "../core/limit.ts";
import type { LimitStanding } from "../core/mode-choice.ts";
import type { Decider } from "../ports/decider.ts";
import type { KeyFigures, RankedKey } from "../ports/observed.ts";
import { type HeavyKey, HeavyKeys } from "./heavy-keys.ts";

/** Keys counted at once: one with a 200th of all checks is always among them. */
const PLACES_MAX = 200;
/** Samples in a second that make the gap between them double, and those that make it shrink. */
const SAMPLES_MAX = 1_000;
const SAMPLES_FEW = 400;
const GAP_MAX = 1_024;
/** Seconds after which a sample counts for 1/e. */
const MEMORY_SECONDS = 30;
/** Slower keys are forgotten, checks per second. */
const SLOWEST = 0.02;

export class KeyRanking {
  readonly #asked = new HeavyKeys(PLACES_MAX);
  readonly #denied = new HeavyKeys(PLACES_MAX);
  /** Decisions until the next sample. */
  #left = 1;
  #gap = 1;
  /** Samples of this second since the gap last grew. */
  #taken = 0;
  #hasGrown = false;
  #draws = 1;
  /** The seconds that the counts stand for, decayed as they are. */
  #seconds = 0;

  /** Passes everything on to `decider` and looks at some of its decisions. */
  over(decider: Decider): Decider {
    return new RankedDecider(decider, this);
  }

  /** A decision was taken. @returns Whether it is to be noted. */
  isDue(): boolean {
    this.#left -= 1;
    return this.#left <= 0;
  }

  /** Notes a decision that was due. */
  note(checks: readonly Check[], decisions: readonly Decision[]): void {
    const stands = this.#gap;
    for (let i = 0; i < checks.length; i += 1) {
      const { limit, key, cost } = checks[i] as Check;
      if (cost === 0) continue;
      this.#asked.add(limit.name, key, stands);
      const decision = decisions[i];
      const isDenied = decision !== undefined && (!decision.allowed || decision.wouldDeny);
      if (isDenied) this.#denied.add(limit.name, key, stands);
    }
  }

  /** Chooses the next decision to look at. */
  advance(): void {
    this.#taken += 1;
    if (this.#taken >= SAMPLES_MAX && this.#gap < GAP_MAX) {
      this.#gap *= 2;
      this.#taken = 0;
      this.#hasGrown = true;
    }
    // A linear congruence; its upper bits, which are the ones that vary well.
    this.#draws = (Math.imul(this.#draws, 1_664_525) + 1_013_904_223) >>> 0;
    this.#left = 1 + ((this.#draws >>> 8) % (2 * this.#gap - 1));
  }

  /** A second has passed, or several. */
  passed(seconds: number): void {
    const factor = Math.exp(-seconds / MEMORY_SECONDS);
    this.#seconds = (this.#seconds + seconds) * factor;
    const least = SLOWEST * this.#seconds;
    this.#asked.decay(factor, least);
    this.#denied.decay(factor, least);
    if (!this.#hasGrown && this.#taken < SAMPLES_FEW && this.#gap > 1) {
      this.#gap /= 2;
      this.#left = Math.min(this.#left, this.#gap);
    }
    this.#taken = 0;
    this.#hasGrown = false;
  }

  /** @param most - Longest list. */
  figures(most: number): KeyFigures {
    const seconds = this.#seconds > 0 ? this.#seconds : 1;
    const ranked = ({ limit, key, count }: HeavyKey): RankedKey => {
      return { limit, key, perSecond: count / seconds };
    };
    return {
      sampledEvery: this.#gap,
      busiest: this.#asked.top(most).map(ranked),
      mostDenied: this.#denied.top(most).map(ranked),
    };
  }
}

class RankedDecider implements Decider {
  readonly #decider: Decider;
  readonly #ranking: KeyRanking;

  constructor(decider: Decider, ranking: KeyRanking) {
    this.#decider = decider;
    this.#ranking = ranking;
  }

  limit(name: string): Limit | undefined {
    return this.#decider.limit(name);
  }

  limits(): readonly Limit[] {
    return this.#decider.limits();
  }

  standing(limit: Limit): LimitStanding {
    return this.#decider.standing(limit);
  }

  report(check: Check): Decision {
    return this.#decider.report(check);
  }

  decide(checks: readonly Check[]): readonly Decision[] | Promise<readonly Decision[]> {
    const outcome = this.#decider.decide(checks);
    if (this.#ranking.isDue()) this.#sample(checks, outcome);
    return outcome;
  }

  #sample(
    checks: readonly Check[],
    outcome: readonly Decision[] | Promise<readonly Decision[]>,
  ): void {
    if (outcome instanceof Promise) {
      // Noted by the gap that it was drawn with, or nearly; whoever asked hears of a failure.
      const asked = [...checks];
      const note = (decisions: readonly Decision[]): void => this.#ranking.note(asked, decisions);
      outcome.then(note, () => {});
    } else {
      this.#ranking.note(checks, outcome);
    }
    this.#ranking.advance();
  }
}
