/**
 * Pods of exact mode that give back what the protocol allows: take more than they use, keep it for
 * any time, give it back in parts, several takes at once, by calls that arrive late, while the
 * server's clock steps. They do not lie: what is given back is not used. Two of them do, as a test
 * of the test.
 *
 * The admissions are told in the store's time and order, at the time of the take.
 */
import { Prng } from "../../sim/prng.ts";
import type { Limit } from "../../src/core/limit.ts";
import { EmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import type { Admission } from "./adversary.ts";
import { callOf, type TakeFields, takenOf, takes } from "./asking.ts";
import { MS, SECOND } from "./pod.ts";

const KEY = "k";
const START = 1_000 * SECOND;
const ACTIONS = 120;
/** Steps of the clock below this pass for delay, so they are made larger. */
const STEP_MIN_US = 200 * MS;

const PROBE = callOf(takes([]));

/** `honest`; `young`: all was taken just now; `newest`: several as if all were taken last. */
export type Word = "honest" | "young" | "newest";

interface Take {
  atUs: number;
  tokens: number;
}

interface Pod {
  readonly takes: Take[];
  heard: { epoch: number; nowUs: number; rawUs: number; sentAt: number } | undefined;
}

export class GiveBacks {
  /** Tokens that the store put back. */
  credited = 0;
  private readonly random: Prng;
  private readonly limit: Limit;
  private readonly word: Word;
  private readonly store = new EmbeddedStore();
  private readonly pods: Pod[];
  private readonly all: Take[] = [];
  private readonly late: { readonly atUs: number; readonly run: () => void }[] = [];
  private readonly habits: {
    readonly pauseUs: number;
    readonly greed: number;
    readonly giveBack: number;
    readonly delayUs: number;
    readonly loss: number;
    readonly step: number;
    readonly hold: number;
  };
  private now = START;
  private skewUs = 0;

  constructor(seed: number, limit: Limit, word: Word = "honest") {
    const random = new Prng(seed);
    this.random = random;
    this.limit = limit;
    this.word = word;
    this.pods = Array.from({ length: 1 + random.below(3) }, () => ({
      takes: [],
      heard: undefined,
    }));
    this.habits = {
      pauseUs: 1 + random.below((2 * limit.burst * SECOND) / limit.rate),
      greed: random.draw(),
      giveBack: random.between(0.2, 0.8),
      delayUs: random.chance(0.5) ? 1 : 1 + random.below(300 * MS),
      loss: random.chance(0.7) ? 0 : 0.2,
      step: random.chance(0.7) ? 0 : 0.05,
      hold: random.chance(0.8) ? 0 : 0.27,
    };
  }

  /** Plays all actions; the admissions are then in order of the store's time. */
  play(): readonly Admission[] {
    for (let i = 0; i < ACTIONS; i += 1) {
      this.pass(this.pause());
      if (this.random.chance(this.habits.step)) this.step();
      this.act(this.pods[this.random.below(this.pods.length)] as Pod);
    }
    this.pass(SECOND);
    return this.all.sort((a, b) => a.atUs - b.atUs);
  }

  private pause(): number {
    const { random, habits } = this;
    const choice = random.below(5);
    if (choice === 0) return random.below(2);
    if (choice === 1) return random.below(5 * MS);
    if (choice === 2) return random.below(120 * MS);
    return random.below(habits.pauseUs);
  }

  /** The server's clock jumps, and with it every reference that is older. */
  private step(): void {
    const by = STEP_MIN_US + this.random.below(20 * SECOND);
    this.skewUs += this.random.chance(0.5) ? by : -by;
  }

  private pass(us: number): void {
    const until = this.now + us;
    for (;;) {
      const due = this.late.filter(({ atUs }) => atUs <= until);
      if (due.length === 0) break;
      const next = due.reduce((first, event) => (event.atUs < first.atUs ? event : first));
      this.late.splice(this.late.indexOf(next), 1);
      this.now = Math.max(this.now, next.atUs);
      next.run();
    }
    this.now = until;
  }

  private act(pod: Pod): void {
    const { random, habits, limit } = this;
    const isBack = pod.takes.length > 0 && random.chance(habits.giveBack);
    const back = isBack ? this.giveBack(pod) : undefined;
    const wanted = random.chance(habits.greed) ? limit.burst : random.below(limit.burst + 1);
    const runs = isBack && random.chance(0.5) ? [] : [[1, wanted] as const];
    this.send(pod, { ...back, runs });
  }

  /** Takes one or several takes of a pod back, in part or whole. */
  private giveBack(pod: Pod): TakeFields {
    const { random } = this;
    const count = random.chance(0.6) ? 1 : 1 + random.below(pod.takes.length);
    let [giveBack, oldest, newest] = [0, Number.POSITIVE_INFINITY, 0];
    for (let i = 0; i < count; i += 1) {
      const isLast = random.chance(0.6);
      const take = pod.takes[isLast ? pod.takes.length - 1 : random.below(pod.takes.length)];
      if (take === undefined) break;
      const tokens = random.chance(0.5) ? take.tokens : random.below(take.tokens + 1);
      take.tokens -= tokens;
      giveBack += tokens;
      oldest = Math.min(oldest, take.atUs);
      newest = Math.max(newest, take.atUs);
      if (take.tokens === 0) pod.takes.splice(pod.takes.indexOf(take), 1);
    }
    if (pod.takes.length > 20) pod.takes.shift();
    const told = { honest: oldest, newest, young: pod.heard?.nowUs ?? 0 };
    return { giveBack, takenAt: told[this.word] };
  }

  private send(pod: Pod, fields: TakeFields): void {
    const { random, habits, limit } = this;
    const sentAt = this.now;
    const { heard } = pod;
    const ago = heard === undefined ? 0 : sentAt - heard.sentAt;
    const call = callOf(takes([{ limit, key: KEY, fields }]), {
      epoch: heard?.epoch ?? 0,
      heardAtUs: heard?.nowUs ?? 0,
      heardAgoUs: ago,
      rawHeardUs: heard?.rawUs ?? 0,
      rawAgoUs: ago,
      hold: random.chance(0.5) ? habits.hold : 0,
    });
    const isLost = random.chance(habits.loss);
    this.after(random.below(habits.delayUs), () => {
      const rawUs = this.now + this.skewUs;
      const before = takenOf(this.store.call(rawUs, { ...PROBE, ...takes([{ limit, key: KEY }]) }));
      const reply = this.store.call(rawUs, call);
      const { admitted, level } = takenOf(reply);
      const tokens = admitted[0] ?? 0;
      if ((fields.giveBack ?? 0) > 0) this.credited += level + tokens - before.level;
      if (isLost) return;
      const take = { atUs: reply.nowUs, tokens };
      if (tokens > 0) this.all.push(take);
      this.after(random.below(habits.delayUs), () => {
        pod.heard = { epoch: reply.epoch, nowUs: reply.nowUs, rawUs: reply.rawUs, sentAt };
        if (tokens > 0) pod.takes.push(take);
      });
    });
  }

  private after(us: number, run: () => void): void {
    if (us === 0) run();
    else this.late.push({ atUs: this.now + us, run });
  }
}
