/**
 * Links between pods and the store host: delay, jitter, loss, duplication, reordering; partition
 * and repair, hold and release, each for one way or both.
 */
import type { DurationUs } from "../src/core/units.ts";
import type { EventLoop } from "./event-loop.ts";
import type { Way } from "./fault-plan.ts";
import type { Prng } from "./prng.ts";

/** How a link treats messages, one way; both ways are alike. */
export interface LinkQuality {
  /** Every message takes at least this. */
  readonly baseUs: DurationUs;
  /** And an exponentially distributed time with this mean on top. */
  readonly jitterUs: DurationUs;
  readonly loss: number;
  readonly duplicate: number;
  /** Part of the messages that take `reorderUs` longer, so that later ones overtake them. */
  readonly reorder: number;
  readonly reorderUs: DurationUs;
}

/** 1 ms + Exp(1 ms) one way, nothing lost: the link of the published measurements. */
export const LAN: LinkQuality = {
  baseUs: 1_000,
  jitterUs: 1_000,
  loss: 0,
  duplicate: 0,
  reorder: 0,
  reorderUs: 0,
};

export type Direction = "to-store" | "from-store";

/** Messages that a held link keeps; more is a leak of the simulator. */
const HELD_MAX = 1_000_000;

interface Gate {
  /** Partitions in force; messages are lost while there are any. */
  cuts: number;
  /** Holds in force. */
  holds: number;
  readonly held: (() => void)[];
}

interface Link {
  /** The quality that holds when no fault does. */
  readonly usual: LinkQuality;
  quality: LinkQuality;
  readonly gates: Readonly<Record<Direction, Gate>>;
}

export class Network {
  lost = 0;
  duplicated = 0;
  readonly #loop: EventLoop;
  readonly #random: Prng;
  readonly #usual: LinkQuality;
  readonly #links: Map<number, Link> = new Map();

  constructor(loop: EventLoop, random: Prng, usual: LinkQuality) {
    this.#loop = loop;
    this.#random = random;
    this.#usual = usual;
  }

  /** Carries one message of a pod's link; `deliver` may run never, once or twice. */
  send(pod: number, direction: Direction, deliver: () => void): void {
    const link = this.#link(pod);
    const gate = link.gates[direction];
    if (gate.cuts > 0 || this.#random.chance(link.quality.loss)) {
      this.lost += 1;
      return;
    }
    this.#carry(link.quality, gate, deliver);
    if (this.#random.chance(link.quality.duplicate)) {
      this.duplicated += 1;
      this.#carry(link.quality, gate, deliver);
    }
  }

  partition(pod: number, way: Way): void {
    for (const gate of this.#gates(pod, way)) gate.cuts += 1;
  }

  repair(pod: number, way: Way): void {
    for (const gate of this.#gates(pod, way)) gate.cuts = Math.max(0, gate.cuts - 1);
  }

  hold(pod: number, way: Way): void {
    for (const gate of this.#gates(pod, way)) gate.holds += 1;
  }

  /** Held messages arrive now, in the order in which they were sent. */
  release(pod: number, way: Way): void {
    for (const gate of this.#gates(pod, way)) {
      gate.holds = Math.max(0, gate.holds - 1);
      if (gate.holds > 0) continue;
      for (const deliver of gate.held.splice(0)) this.#loop.after(0, deliver);
    }
  }

  worsen(pod: number, change: Partial<LinkQuality>): void {
    const link = this.#link(pod);
    link.quality = { ...link.usual, ...change };
  }

  mend(pod: number): void {
    const link = this.#link(pod);
    link.quality = link.usual;
  }

  #carry(quality: LinkQuality, gate: Gate, deliver: () => void): void {
    let delayUs = quality.baseUs + this.#random.exponential(quality.jitterUs);
    if (this.#random.chance(quality.reorder)) delayUs += quality.reorderUs;
    this.#loop.after(Math.round(delayUs), () => {
      if (gate.holds === 0) {
        deliver();
        return;
      }
      if (gate.held.length >= HELD_MAX) throw new Error(`a link holds ${HELD_MAX} messages`);
      gate.held.push(deliver);
    });
  }

  #link(pod: number): Link {
    let link = this.#links.get(pod);
    if (link === undefined) {
      const gate = (): Gate => ({ cuts: 0, holds: 0, held: [] });
      link = {
        usual: this.#usual,
        quality: this.#usual,
        gates: { "to-store": gate(), "from-store": gate() },
      };
      this.#links.set(pod, link);
    }
    return link;
  }

  #gates(pod: number, way: Way): Gate[] {
    const { gates } = this.#link(pod);
    return way === "both" ? [gates["to-store"], gates["from-store"]] : [gates[way]];
  }
}
