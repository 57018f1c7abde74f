/**
 * Who belongs to the fleet, and which limits saw large costs lately: what `lua/join.lua`, which
 * explains the rules, keeps in sorted sets. Times are those of lane 0.
 */
import type { Roster } from "../../core/exchange.ts";
import { type DurationUs, type InstantUs, US_PER_SECOND } from "../../core/units.ts";
import { type HeartbeatTerms, LARGE_COSTS_MAX } from "../../ports/coordinator.ts";
import { followBand, type LaneRecord } from "./lane-record.ts";

const COST_LIFE_US: DurationUs = 600 * US_PER_SECOND;
/** Names remembered; the oldest go first. */
const COSTS_MAX = 256;

export class FleetRecord {
  private readonly members: Map<string, InstantUs>;
  private readonly costs: Map<string, InstantUs>;

  constructor(members?: Iterable<[string, InstantUs]>, costs?: Iterable<[string, InstantUs]>) {
    this.members = new Map(members);
    this.costs = new Map(costs);
  }

  get size(): number {
    return this.members.size;
  }

  /** Registers or renews a member, drops the dead, and counts. */
  heartbeat(lane: LaneRecord, member: string, terms: HeartbeatTerms): Roster {
    const now = lane.last;
    this.members.set(member, now);
    trim(this.members, now, terms.timeoutUs);
    this.forgetFormer(member, now - Math.floor(0.6 * terms.silentAfterUs));
    let silent = 0;
    for (const heardAt of this.members.values()) {
      if (heardAt <= now - terms.silentAfterUs) silent += 1;
    }
    const pods = this.members.size;
    lane.members = pods;
    followBand(lane, pods);
    for (const name of terms.largeCosts.slice(0, LARGE_COSTS_MAX)) this.costs.set(name, now);
    trim(this.costs, now, COST_LIFE_US);
    this.dropOldest();
    return { pods, silent, band: lane.band, largeCosts: [...this.costs.keys()].sort() };
  }

  leave(member: string): void {
    this.members.delete(member);
  }

  copy(): FleetRecord {
    return new FleetRecord(this.members, this.costs);
  }

  /** What this pod was before it started anew is gone once it has missed a heartbeat. */
  private forgetFormer(member: string, heardBefore: InstantUs): void {
    const pod = podOf(member);
    for (const [other, heardAt] of this.members) {
      if (heardAt <= heardBefore && podOf(other) === pod) this.members.delete(other);
    }
  }

  private dropOldest(): void {
    if (this.costs.size <= COSTS_MAX) return;
    const byAge = [...this.costs].sort(([a, s], [b, t]) => s - t || (a < b ? -1 : 1));
    for (const [name] of byAge.slice(0, this.costs.size - COSTS_MAX)) this.costs.delete(name);
  }
}

function podOf(member: string): string {
  const end = member.lastIndexOf("/");
  return end < 0 ? member : member.slice(0, end);
}

/**
 * Drops what is older than `lifeUs`; what lies ahead of a clock that was lost counts from now on.
 */
function trim(times: Map<string, InstantUs>, now: InstantUs, lifeUs: DurationUs): void {
  for (const [name, at] of times) {
    if (at <= now - lifeUs) times.delete(name);
    else if (at > now) times.set(name, now);
  }
}
