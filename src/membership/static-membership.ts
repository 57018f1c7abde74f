/** A fleet of a fixed size, for those who know it and want no heartbeats. */

import type { Membership, MembershipListener } from "./membership.ts";

export class StaticMembership implements Membership {
  readonly joined: Promise<void> = Promise.resolve();
  private readonly pods: number;
  private readonly listener: MembershipListener;

  /** @param pods - Pods of the fleet, this one included; a positive whole number. */
  constructor(pods: number, listener: MembershipListener) {
    this.pods = pods;
    this.listener = listener;
  }

  start(): void {
    this.listener.membershipChanged({ pods: this.pods, silent: 0 });
  }

  nudge(): void {}

  async leave(): Promise<void> {}
}
