/**
 * Membership by heartbeats in the store: this pod renews its own entry and counts the others in the
 * same call.
 *
 * One call at a time, one per heartbeat, jittered so that pods started together drift apart. A
 * failure changes nothing about the rhythm: a store that is away is asked once per heartbeat, and
 * after it returned the pod is a member within one. Only before the first success, and only while
 * there is no connection (so that the store sees none of it), the pauses begin short and double:
 * a pod that starts beside a healthy store should not wait a whole heartbeat for a connection that
 * takes milliseconds.
 */
import type { Roster } from "../core/exchange.ts";
import { type DurationUs, US_PER_MS } from "../core/units.ts";
import { type Coordinator, CoordinatorError, type HeartbeatTerms } from "../ports/coordinator.ts";
import type { Random } from "../ports/random.ts";
import type { Membership, MembershipListener } from "./membership.ts";

/** A pod is silent when two heartbeats are surely missing; one late heartbeat must not count. */
const SILENT_AFTER_HEARTBEATS = 2.5;

/** The first pause before the first success. */
const EAGER_PAUSE_US = 20 * US_PER_MS;

export interface RedisMembershipOptions {
  readonly coordinator: Pick<Coordinator, "heartbeat" | "leave">;
  readonly random: Random;
  readonly heartbeatUs: DurationUs;
  /** A pod silent for this long is dropped. */
  readonly timeoutUs: DurationUs;
  readonly listener: MembershipListener;
}

export class RedisMembership implements Membership {
  readonly joined: Promise<void>;
  private readonly options: RedisMembershipOptions;
  private readonly terms: HeartbeatTerms;
  private markJoined: () => void = () => {};
  private eagerPauseUs: DurationUs = EAGER_PAUSE_US;
  private timer: NodeJS.Timeout | undefined;
  /** The call that is under way, to be awaited before the leave. */
  private call: Promise<void> = Promise.resolve();
  private stopped = false;

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

  /** @throws {CoordinatorError} When the store did not confirm; it forgets the pod by itself later. */
  async leave(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.timer);
    // A heartbeat that the store sees after the leave would put the pod back for `timeoutUs`.
    await this.call;
    await this.options.coordinator.leave();
  }

  /** One heartbeat; rejects only with what a listener throws, which is a bug and ends the process. */
  private async beat(): Promise<void> {
    const { coordinator, listener } = this.options;
    const outcome = await attempt(coordinator, this.terms);
    if (!this.stopped) this.scheduleNext(outcome);
    if ("error" in outcome) {
      listener.membershipFailed(outcome.error);
      return;
    }
    listener.membershipChanged({ pods: outcome.roster.pods, silent: outcome.roster.silent });
    this.markJoined();
  }

  private scheduleNext(outcome: Outcome): void {
    this.timer = setTimeout(() => {
      this.call = this.beat();
    }, this.pauseUs(outcome) / US_PER_MS);
  }

  private pauseUs(outcome: Outcome): DurationUs {
    const { heartbeatUs, random } = this.options;
    const jittered = heartbeatUs * (0.9 + 0.2 * random.draw());
    if (!("error" in outcome)) this.eagerPauseUs = heartbeatUs;
    if (!isUnreachable(outcome) || this.eagerPauseUs >= heartbeatUs) return jittered;
    const pauseUs = this.eagerPauseUs;
    this.eagerPauseUs *= 2;
    return pauseUs;
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

function isUnreachable(outcome: Outcome): boolean {
  if (!("error" in outcome)) return false;
  return outcome.error instanceof CoordinatorError && outcome.error.kind === "unreachable";
}
