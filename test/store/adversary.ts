/**
 * Pods that do anything the protocol of leased mode allows: ask for up to the whole burst, hold
 * what they get, spend it at the last allowed instant, report late, in part or never, lose calls
 * and crash. They do not lie: what is reported as returned is not spent.
 *
 * Everything follows from one seed, on the embedded store alone.
 */
import { Prng } from "../../sim/prng.ts";
import type { Limit } from "../../src/core/limit.ts";
import { LEASE_SLOT_US, LEASE_US } from "../../src/core/store-call.ts";
import { EmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import { callOf, type LeaseFields, leasedOf, leases, takenOf, takes } from "./asking.ts";
import { MS, SECOND } from "./pod.ts";

const KEY = "k";
const START = 1_000 * SECOND;
const ACTIONS = 120;
/** A lease is void so long after the call that asked for it was sent. */
const USABLE_US = 0.9 * LEASE_US;

export interface Admission {
  readonly atUs: number;
  /** Less, once some of it was given back unused. */
  tokens: number;
}

interface Lease {
  readonly slot: number;
  readonly deadline: number;
  tokens: number;
}

interface Pod {
  leases: Lease[];
  /** Spent and not yet reported, by slot. */
  readonly owed: Map<number, number>;
  /** What the store let through. */
  readonly takes: Admission[];
  heard: { epoch: number; nowUs: number; sentAt: number } | undefined;
}

interface Event {
  readonly atUs: number;
  readonly run: () => void;
}

export class Adversaries {
  readonly admissions: Admission[] = [];
  private readonly random: Prng;
  private readonly limit: Limit;
  private readonly takesPart: number;
  private readonly store = new EmbeddedStore();
  private readonly pods: Pod[];
  private readonly events: Event[] = [];
  /** What the pods of this run like to do: some runs only ever hold to the end, some never do. */
  private readonly habits: {
    readonly spend: number;
    readonly atLast: number;
    readonly raid: number;
    readonly grab: number;
    readonly silent: number;
    readonly giveBack: number;
  };
  private readonly loss: number;
  private readonly delayUs: number;
  private now = START;

  /** @param takesPart - How often a pod asks for a decision in the store instead of a lease. */
  constructor(seed: number, limit: Limit, takesPart: number) {
    this.random = new Prng(seed);
    this.takesPart = takesPart;
    this.limit = limit;
    this.pods = Array.from({ length: 1 + this.random.below(4) }, () => ({
      leases: [],
      owed: new Map(),
      takes: [],
      heard: undefined,
    }));
    const { random } = this;
    this.habits = {
      spend: random.between(0, 0.4),
      atLast: random.between(0, 0.3),
      raid: random.between(0, 0.2),
      grab: random.draw() ** 2,
      silent: random.draw() ** 2,
      giveBack: random.draw() ** 2,
    };
    this.loss = this.random.chance(0.5) ? 0 : this.random.between(0, 0.3);
    this.delayUs = this.random.chance(0.5) ? 0 : this.random.below(400 * MS);
  }

  /** Plays all actions; the admissions are then in order of time. */
  play(): readonly Admission[] {
    for (let i = 0; i < ACTIONS; i += 1) {
      const pod = this.pods[this.random.below(this.pods.length)] as Pod;
      this.act(pod);
      this.until(this.now + this.pause());
    }
    this.until(this.now + 3 * SECOND);
    return this.admissions.sort((a, b) => a.atUs - b.atUs);
  }

  private act(pod: Pod): void {
    const { random, habits } = this;
    if (random.chance(this.takesPart)) this.take(pod);
    else if (random.chance(0.01))
      pod.leases = []; // crashed; what it held lapses
    else if (random.chance(habits.spend)) this.spendSome(pod);
    else if (random.chance(habits.atLast)) this.spendAtLast(pod);
    else if (random.chance(habits.raid)) this.planRaid(pod);
    else this.call(pod);
  }

  /** Nothing, a moment, some time, or up to the end of a lease slot and its neighbours. */
  private pause(): number {
    const { random } = this;
    const choice = random.below(6);
    if (choice === 0) return random.below(2);
    if (choice === 1) return random.below(10 * MS);
    if (choice === 2) return random.below(200 * MS);
    if (choice === 3) return random.below(1_500 * MS);
    const left = LEASE_SLOT_US - (this.now % LEASE_SLOT_US);
    return Math.max(0, left + random.below(3) - 1 + LEASE_SLOT_US * random.below(3));
  }

  private until(atUs: number): void {
    for (;;) {
      const due = this.events.filter((event) => event.atUs <= atUs);
      if (due.length === 0) break;
      const next = due.reduce((first, event) => (event.atUs < first.atUs ? event : first));
      this.events.splice(this.events.indexOf(next), 1);
      this.now = Math.max(this.now, next.atUs);
      next.run();
    }
    this.now = atUs;
  }

  private later(delayUs: number, run: () => void): void {
    if (delayUs === 0) run();
    else this.events.push({ atUs: this.now + delayUs, run });
  }

  private delay(): number {
    return this.delayUs === 0 ? 0 : this.random.below(this.delayUs);
  }

  private admit(tokens: number): Admission {
    const admission = { atUs: this.now, tokens };
    if (tokens > 0) this.admissions.push(admission);
    return admission;
  }

  private spend(pod: Pod, lease: Lease, tokens: number): void {
    if (lease.deadline < this.now || !pod.leases.includes(lease)) return;
    const spent = Math.min(tokens, lease.tokens);
    lease.tokens -= spent;
    this.admit(spent);
    pod.owed.set(lease.slot, (pod.owed.get(lease.slot) ?? 0) + spent);
  }

  private spendSome(pod: Pod): void {
    const lease = pod.leases[this.random.below(pod.leases.length)];
    if (lease === undefined) return;
    const all = this.random.chance(0.5);
    this.spend(pod, lease, all ? lease.tokens : this.random.below(lease.tokens + 1));
  }

  private spendAtLast(pod: Pod): void {
    for (const lease of pod.leases) {
      const wait = lease.deadline - this.now;
      if (wait >= 0) this.later(wait, () => this.spend(pod, lease, lease.tokens));
    }
  }

  /** At the last instant of a lease, one pod asks for all there is and all spend what they have. */
  private planRaid(pod: Pod): void {
    const lease = pod.leases[this.random.below(pod.leases.length)];
    if (lease === undefined || lease.deadline < this.now) return;
    this.later(lease.deadline - this.now, () => {
      const { burst } = this.limit;
      this.ask(pod, { need: burst, want: burst, demand: burst, unit: 1 });
      for (const each of this.pods) {
        for (const held of each.leases) this.spend(each, held, held.tokens);
      }
    });
  }

  private call(pod: Pod): void {
    const { random, limit } = this;
    const { burst } = limit;
    const some = [0, 1, random.below(burst + 1)][random.below(3)] as number;
    const wish = random.chance(this.habits.grab) ? burst : some;
    const need = random.chance(0.5) ? wish : random.below(wish + 1);
    const demand = random.chance(0.8) ? wish : random.below(10 * burst);
    this.ask(pod, { need, want: wish, demand, unit: Math.min(need, 1), low: 1 });
  }

  private ask(pod: Pod, asked: LeaseFields): void {
    const { random, limit } = this;
    const elapsedSeconds = random.chance(0.3) ? -1 : random.between(0, 1);
    const fields = { ...asked, elapsedSeconds, reports: this.reports(pod) };
    this.send(pod, leases([{ limit, key: KEY, fields }]), (reply, sentAt) => {
      const { granted, slot } = leasedOf(reply);
      if (granted > 0) pod.leases.push({ slot, deadline: sentAt + USABLE_US, tokens: granted });
    });
  }

  private reports(pod: Pod): [number, number, number][] {
    const { random } = this;
    const told: [number, number, number][] = [];
    for (const [slot, owed] of pod.owed) {
      if (random.chance(this.habits.silent)) continue;
      const spent = random.chance(0.8) ? owed : random.below(owed + 1);
      told.push([slot, spent, 0]);
      pod.owed.set(slot, owed - spent);
      if (random.chance(0.1)) pod.owed.delete(slot);
    }
    for (const lease of pod.leases) {
      if (!random.chance(this.habits.giveBack)) continue;
      const back = random.chance(0.5) ? lease.tokens : random.below(lease.tokens + 1);
      lease.tokens -= back;
      told.push([lease.slot, 0, back]);
    }
    pod.leases = pod.leases.filter(({ tokens }) => tokens > 0);
    return told;
  }

  /** Decides in the store, and may give back what an earlier decision let through. */
  private take(pod: Pod): void {
    const { random, limit } = this;
    const runs = [[1 + random.below(limit.burst), 1 + random.below(3)] as const];
    const back = random.chance(this.habits.giveBack) ? pod.takes.pop() : undefined;
    const giveBack = back === undefined ? 0 : random.below(back.tokens + 1);
    if (back !== undefined) back.tokens -= giveBack;
    const fields = { runs, giveBack, takenAt: back?.atUs ?? 0 };
    const reply = this.store.call(this.now, callOf(takes([{ limit, key: KEY, fields }])));
    const tokens = (takenOf(reply).admitted[0] ?? 0) * (runs[0]?.[0] ?? 0);
    if (tokens > 0) pod.takes.push(this.admit(tokens));
  }

  private send(
    pod: Pod,
    body: ReturnType<typeof leases>,
    done: (reply: ReturnType<EmbeddedStore["call"]>, sentAt: number) => void,
  ): void {
    const sentAt = this.now;
    const { heard } = pod;
    const call = callOf(body, {
      epoch: heard?.epoch ?? 0,
      heardAtUs: heard?.nowUs ?? 0,
      heardAgoUs: heard === undefined ? 0 : sentAt - heard.sentAt,
    });
    if (this.random.chance(this.loss)) return;
    this.later(this.delay(), () => {
      const reply = this.store.call(this.now, call);
      if (this.random.chance(this.loss)) return;
      this.later(this.delay(), () => {
        pod.heard = { epoch: reply.epoch, nowUs: reply.nowUs, sentAt };
        done(reply, sentAt);
      });
    });
  }
}

/** Most tokens that were ever admitted beyond what one bucket would have, in any span of time. */
export function excessOf(limit: Limit, admissions: readonly Admission[]): number {
  const { refill, period, tickUs, burst } = limit;
  let deficit = 0;
  let last = 0;
  let worst = 0;
  for (const { atUs, tokens } of admissions) {
    deficit = Math.max(0, deficit - (refill * (atUs - last)) / tickUs) + tokens * period;
    last = atUs;
    worst = Math.max(worst, deficit - burst * period);
  }
  return worst / period;
}
