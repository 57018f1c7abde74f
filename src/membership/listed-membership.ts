/**
 * Membership by heartbeats and by a source beside the store.
 *
 * The heartbeats say who can be heard and keep this pod counted by the others; the source says who
 * is there, also while the store is away. The engine puts the two together.
 */
import type { Membership } from "./membership.ts";
import type { PodSource } from "./pod-source.ts";

export class ListedMembership implements Membership {
  readonly joined: Promise<void>;
  private readonly heartbeats: Membership;
  private readonly source: PodSource;

  constructor(heartbeats: Membership, source: PodSource) {
    this.joined = heartbeats.joined;
    this.heartbeats = heartbeats;
    this.source = source;
  }

  start(): void {
    this.source.start();
    this.heartbeats.start();
  }

  nudge(): void {
    this.heartbeats.nudge();
  }

  async leave(): Promise<void> {
    this.source.stop();
    await this.heartbeats.leave();
  }
}
