/**
 * Aliquot against the designs that it replaces, in turns on the same Redis, with hot keys: checks
 * per second as fast as they go, then times in an open loop at the same paces for all that are
 * alike: a low one, and a part of what the Lua design reached just before.
 *
 * Two cores are shared as follows. Over HTTP the one who decides has the first core; load and Redis
 * have the second, and while times are measured the load sleeps when it awaits an answer. Where the
 * application asks by itself, it has the first core with its client, and what it asks has the
 * second: Redis, or the sidecar beside a Redis that has next to nothing to do.
 */
import type { AskerTimes } from "./asker.ts";
import { ClientProcess } from "./client-process.ts";
import {
  BASELINES,
  DESIGNS,
  type Design,
  type DesignName,
  type Front,
  HIGH_PARTS,
  LOW_PACE,
} from "./design.ts";
import { Deciders } from "./design-deciders.ts";
import { DESIGN_CLIENT_ARGUMENT, type DesignClient, type DesignCount } from "./design-load.ts";
import type { PaceOrder } from "./open-loop.ts";
import { pacedInTurn } from "./paced-client.ts";
import { processorUs } from "./processor-time.ts";
import { spreadOf } from "./rounds.ts";
import { type BenchSetup, waitingOf } from "./setup.ts";

export interface DesignRow {
  readonly design: Design;
  /** Checks per second of each round, as fast as they go. */
  readonly perSecond: readonly number[];
  /** Redis calls per check in those rounds. */
  readonly callsPerCheck: number;
  /** Processor time per check in those rounds, us: of the process that asks, of the server that it
   * asks (none where that is Redis), and of Redis. */
  readonly clientUs: number;
  readonly serverUs: number;
  readonly redisUs: number;
}

/** An open loop at one pace, over the designs of a front that answer single checks. */
export interface DesignTimes {
  readonly front: Front;
  readonly perSecond: number;
  /** Of what the baseline reached; undefined for the lower pace. */
  readonly part: number | undefined;
  readonly rows: readonly { readonly design: Design; readonly rounds: readonly AskerTimes[] }[];
}

export interface DesignFigures {
  readonly rows: readonly DesignRow[];
  readonly times: readonly DesignTimes[];
}

/** Measures all designs in alternating rounds; starts and stops all processes. */
export async function measureDesigns(setup: BenchSetup): Promise<DesignFigures> {
  const deciders = await Deciders.start(setup);
  const courses = DESIGNS.map((design) => new Course(design, deciders, setup));
  try {
    for (let round = 0; round <= setup.rounds.count; round += 1) {
      // The first round of each warms it up.
      for (const course of courses) await course.round(setup.rounds.seconds, round > 0);
    }
    const rows = courses.map((course) => course.row());
    const times: DesignTimes[] = [];
    for (const front of ["ioredis", "http"] as const) {
      const alike = courses.filter((each) => each.design.front === front && each.isTimed);
      for (const part of [undefined, ...HIGH_PARTS]) {
        const perSecond = part === undefined ? LOW_PACE : highPace(rows, front, part);
        const waiting = waitingOf(setup, front === "http");
        const order = { perSecond, seconds: setup.rounds.seconds, waiting };
        const sides = alike.map((course) => () => course.paced(order));
        const told = await pacedInTurn(sides, setup.rounds.count);
        const timed = alike.map(({ design }, index) => ({ design, rounds: told[index] ?? [] }));
        times.push({ front, perSecond, part, rows: timed });
      }
    }
    return { rows, times };
  } finally {
    for (const course of courses) course.close();
    await deciders.stop();
  }
}

/** Checks a second: a part of the median that the baseline of a front reached. */
export function highPace(rows: readonly DesignRow[], front: Front, part: number): number {
  return Math.round(part * spreadOf(rowOf(rows, BASELINES[front]).perSecond).median);
}

export function rowOf(rows: readonly DesignRow[], name: DesignName): DesignRow {
  const row = rows.find(({ design }) => design.name === name);
  if (row === undefined) throw new Error(`${name} was not measured`);
  return row;
}

/** One design, round by round. */
class Course {
  readonly design: Design;
  readonly #deciders: Deciders;
  readonly #client: DesignClient;
  readonly #perSecond: number[] = [];
  #checks = 0;
  #calls = 0;
  #clientUs = 0;
  #serverUs = 0;
  #redisUs = 0;

  constructor(design: Design, deciders: Deciders, setup: BenchSetup) {
    this.design = design;
    this.#deciders = deciders;
    const isApplication = design.front === "ioredis" && design.checks === 1;
    const command = isApplication ? setup.serverCommand : setup.clientCommand;
    const args = [DESIGN_CLIENT_ARGUMENT, JSON.stringify({ design, places: deciders.places })];
    this.#client = new ClientProcess(setup.main, command, args);
  }

  get isTimed(): boolean {
    return this.design.checks === 1;
  }

  /** As fast as it goes. */
  async round(seconds: number, isCounted: boolean): Promise<void> {
    const server = this.#deciders.serverOf(this.design.name);
    const before = await this.#read(server);
    const { checksPerSecond, wrong } = (await this.#client.run({ seconds })) as DesignCount;
    const after = await this.#read(server);
    if (wrong > 0) throw new Error(`${wrong} checks of ${this.design.name} were not admitted`);
    if (!isCounted) return;
    this.#perSecond.push(checksPerSecond);
    this.#checks += checksPerSecond * seconds;
    this.#calls += after.calls - before.calls;
    this.#clientUs += after.clientUs - before.clientUs;
    this.#serverUs += after.serverUs - before.serverUs;
    this.#redisUs += after.redisUs - before.redisUs;
  }

  async paced(order: PaceOrder): Promise<AskerTimes> {
    this.#deciders.serverOf(this.design.name);
    return (await this.#client.run(order)) as AskerTimes;
  }

  row(): DesignRow {
    return {
      design: this.design,
      perSecond: this.#perSecond,
      callsPerCheck: this.#calls / this.#checks,
      clientUs: this.#clientUs / this.#checks,
      serverUs: this.#serverUs / this.#checks,
      redisUs: this.#redisUs / this.#checks,
    };
  }

  close(): void {
    this.#client.close();
  }

  async #read(server: number | undefined): Promise<Reading> {
    const { redis } = this.#deciders;
    await redis.refreshCalls();
    return {
      calls: redis.scriptCalls,
      clientUs: processorUs(this.#client.pid),
      serverUs: server === undefined ? 0 : processorUs(server),
      redisUs: processorUs(redis.pid ?? 0),
    };
  }
}

interface Reading {
  readonly calls: number;
  readonly clientUs: number;
  readonly serverUs: number;
  readonly redisUs: number;
}
