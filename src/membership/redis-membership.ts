/**
 * Membership by heartbeats in the store: this pod renews its own entry and counts the others in the
 * same call.
 *
 * One call at a time, one per heartbeat, jittered so that pods started together drift apart. A
 * failure changes nothing about the rhythm: a store that is away is asked once per heartbeat. Who
 * knows that it is back (a connection came up) says so with `nudge`, and the pod is a member at
 * once.
 */
import type { Roster } from "../core/exchange.ts";
import { type DurationUs, US_PER_MS } from "../core/units.ts";
import type { Coordinator, HeartbeatTerms } from "../ports/coordinator.ts";
import type { Random } from "../ports/random.ts";
import type { Membership, MembershipListener } from "./membership.ts";

/** A pod is silent when two heartbeats are surely missing; one late heartbeat must not count. */
const SILENT_AFTER_HEARTBEATS = 2.5;

/** The second heartbeat comes after this part of the usual pause. */
const SECOND_BEAT_PART = 0.2;

export interface RedisMembershipOptions {
  readonly coordinator: Pick<Coordinator, "heartbeat" | "leave">;
  readonly random: Random;
  readonly heartbeatUs: DurationUs;
  /** A pod silent for this long is dropped. */
  readonly timeoutUs: DurationUs;
  /** Names of limits for which this pod lately saw a large cost; none by default. */
  readonly largeCosts?: () => readonly string[];
  readonly listener: MembershipListener;
}

export class RedisMembership implements Membership {
  readonly joined: Promise<void>;
  private readonly options: RedisMembershipOptions;
  private readonly terms: Omit<HeartbeatTerms, "largeCosts">;
  private markJoined: () => void = () => {};
  private timer: NodeJS.Timeout | undefined;
  /** The call that is under way, or the last one; to be awaited before the leave. */
  private call: Promise<void> = Promise.resolve();
  private waiting: "for the store" | "for the heartbeat" | "after a failure" = "for the store";
  private stopped = false;
  private hasCounted = false;

  constructor(options: RedisMembershipOptions) {
    this.options = options;
    const silentAfterUs = SILENT_AFTER_HEARTBEATS * options.heartbeatUs;
    this.terms = {
      timeoutUs: options.timeoutUs,
      silentAfterUs: Math.min(Math.floor(silentAfterUs), options.timeoutUs),
    };
    this.joined = new Promise((resolve) => {
      this.markJoined = resolve;
    });
  }

  start(): void {
    this.call = this.beat();
  }

  /**
   * There is reason to believe that the store answers: after a failure the next heartbeat is now.
   */
  nudge(): void {
    if (this.stopped || this.waiting !== "after a failure") return;
    clearTimeout(this.timer);
    this.call = this.beat();
  }

  /**
   * @throws {CoordinatorError} When the store did not confirm; it forgets the pod by itself later.
   */
  async leave(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.timer);
    // A heartbeat that the store sees after the leave would put the pod back for `timeoutUs`.
    await this.call;
    await this.options.coordinator.leave();
  }

  /**
   * One heartbeat; rejects only with what a listener throws, which is a bug and ends the process.
   */
  private async beat(): Promise<void> {
    const { coordinator, listener, largeCosts } = this.options;
    this.waiting = "for the store";
    const terms = { ...this.terms, largeCosts: largeCosts?.() ?? [] };
    const outcome = await attempt(coordinator, terms);
    this.waiting = "error" in outcome ? "after a failure" : "for the heartbeat";
    if (!this.stopped) this.scheduleNext("roster" in outcome);
    if ("error" in outcome) {
      listener.membershipFailed(outcome.error);
      return;
    }
    listener.membershipChanged(outcome.roster);
    this.markJoined();
  }

  /**
   * The first count may come from the middle of a fleet that starts all at once, so the second is
   * taken soon: until then the pods that came first would think themselves alone.
   */
  private scheduleNext(isCounted: boolean): void {
    const { heartbeatUs, random } = this.options;
    const isFirst = isCounted && !this.hasCounted;
    this.hasCounted ||= isCounted;
    const nominalUs = isFirst ? heartbeatUs * SECOND_BEAT_PART : heartbeatUs;
    const pauseUs = nominalUs * (0.9 + 0.2 * random.draw());
    this.timer = setTimeout(() => {
      this.call = this.beat();
    }, pauseUs / US_PER_MS);
  }
}

type Outcome = { readonly roster: Roster } | { readonly error: unknown };

type Store = RedisMembershipOptions["coordinator"];

async function attempt(store: Store, terms: HeartbeatTerms): Promise<Outcome> {
  try {
    return { roster: await store.heartbeat(terms) };
  } catch (error) {
    return { error };
  }
}
