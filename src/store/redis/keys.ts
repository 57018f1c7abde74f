/**
 * Names of everything kept in Redis. The layout is shared by all pods of a fleet, of any version.
 *
 * No byte that a caller chose reaches a name: limit and key are hashed together, so nothing can be
 * injected, and no two pairs meet. The part in braces is the hash tag: it alone decides the slot of
 * a cluster, so all names of one lane lie together there.
 */
import { hash } from "node:crypto";
import { GROUPS, groupOfKey } from "../../core/exchange.ts";

/** Bytes of SHA-256 kept, in base64url digits: 22 hold 132 bits. */
const DIGEST_DIGITS = 22;

export class KeyNames {
  private readonly fleet: string;
  private readonly lanes: number;

  /**
   * @param fleet - Name of the fleet, `[a-z0-9-]` as the configuration ensures.
   * @param lanes - 64 on a cluster; fewer on a single server.
   */
  constructor(fleet: string, lanes: number) {
    if (!Number.isInteger(lanes) || lanes < 1 || GROUPS % lanes !== 0) {
      throw new RangeError(`lanes must divide ${GROUPS}, got ${lanes}`);
    }
    this.fleet = fleet;
    this.lanes = lanes;
  }

  /** The state of one limit and key. */
  state(limitName: string, key: string): string {
    return `aliquot:{${groupOfKey(key)}}:${this.fleet}:${limitName}:${keyDigest(limitName, key)}`;
  }

  /** The record of a lane. */
  meta(lane: number): string {
    return `aliquot:{${this.tag(lane)}}:${this.fleet}:meta`;
  }

  /** The last batch applied of one process in a lane. */
  sequence(lane: number, podId: string, incarnation: string): string {
    return `aliquot:{${this.tag(lane)}}:${this.fleet}:seq:${podId}:${incarnation}`;
  }

  /** The members of the fleet. */
  pods(): string {
    return `aliquot:{0}:${this.fleet}:pods`;
  }

  /** Limits that saw large costs lately. */
  largeCosts(): string {
    return `aliquot:{0}:${this.fleet}:costs`;
  }

  private tag(lane: number): number {
    if (!Number.isInteger(lane) || lane < 0 || lane >= this.lanes) {
      throw new RangeError(`lane must be from 0 to ${this.lanes - 1}, got ${lane}`);
    }
    return lane;
  }
}

/**
 * 128 bits and a little over limit and key. The length in front says where the one ends; UTF-16
 * keeps keys apart that differ in lone surrogates, which UTF-8 would all turn into one character.
 */
export function keyDigest(limitName: string, key: string): string {
  const encoded = Buffer.from(`${limitName.length}:${limitName}${key}`, "utf16le");
  return hash("sha256", encoded, "base64url").slice(0, DIGEST_DIGITS);
}
