/**
 * Who this process is to the fleet. A pod's name says too little: a container that restarts in its
 * pod keeps it, and a StatefulSet gives it out again, while the batch numbers of the new process
 * begin at 1. So an incarnation, drawn anew at every start, tells processes of one name apart.
 */
import { randomBytes } from "node:crypto";

export interface Identity {
  /** The pod's name or UID, from the configuration. */
  readonly podId: string;
  /** 64 random bits in hexadecimal, 16 digits. */
  readonly incarnation: string;
}

export function newIdentity(podId: string): Identity {
  return { podId, incarnation: randomBytes(8).toString("hex") };
}
