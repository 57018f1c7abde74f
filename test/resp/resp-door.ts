/** Speaking RESP to the code under test: over a wire in memory, or over a listener. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { Duplex } from "node:stream";
import type { Limit } from "../../src/core/limit.ts";
import { shapedLimit } from "../../src/core/shaped-limits.ts";
import type { Decider } from "../../src/ports/decider.ts";
import { RespConnection } from "../../src/server/resp/resp-connection.ts";
import { type RespParts, RespService } from "../../src/server/resp/resp-service.ts";
import type { SoleEngine } from "../support/sole-engine.ts";

/** Stands for every limit that a caller brings. */
export const INLINE: Limit = shapedLimit({
  name: "resp/inline",
  intervalUs: 100_000,
  fallback: { policy: "local", margin: 0.9, maxPods: 20 },
});

export interface Parts extends RespParts {
  readonly faults: unknown[];
  readonly durations: number[];
}

/** Everything that a service needs, with inline limits allowed and a clock of the test. */
export function partsOf(
  decider: Decider,
  nowUs: () => number,
  inlineLimitsMax = 100,
  inlineLimit: Limit | undefined = INLINE,
): Parts {
  const [faults, durations]: [unknown[], number[]] = [[], []];
  return {
    decider,
    clock: { monotonicUs: nowUs },
    inline: () => ({ inlineLimit, inlineLimitsMax }),
    version: "1.2.3",
    observeUs: (us) => durations.push(us),
    onUnexpectedError: (error) => faults.push(error),
    faults,
    durations,
  };
}

/** The front doors' view of an engine without a store. */
export function deciderOf(sole: SoleEngine, configured: readonly Limit[]): Decider {
  return {
    limit: (name) => configured.find((limit) => limit.name === name),
    limits: () => configured,
    standing: (limit) => sole.engine.standing(limit),
    decide: (checks) => sole.checkAll(checks),
    report: (check) => sole.engine.report(sole.now, check),
  };
}

/** A connection without a network: what is pushed arrives at once and in these parts. */
export class Wire extends Duplex {
  readonly connection: RespConnection;
  text = "";
  writes = 0;
  /** Set to make writes wait, as for a client that does not read. */
  isStuck = false;
  #stuck: (() => void)[] = [];

  constructor(parts: RespParts) {
    super({ highWaterMark: 16_384 });
    this.connection = new RespConnection(this, new RespService(parts), 7);
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.writes += 1;
    const write = (): void => {
      this.text += chunk.toString("latin1");
      done();
    };
    if (this.isStuck) this.#stuck.push(write);
    else write();
  }

  /** The client reads again. */
  unstick(): void {
    this.isStuck = false;
    for (const write of this.#stuck.splice(0)) write();
  }

  /** Sends bytes, one for each character, and tells what was answered by the end of this turn. */
  async say(text: string): Promise<string> {
    const before = this.text.length;
    this.push(Buffer.from(text, "latin1"));
    await new Promise((resolve) => setImmediate(resolve));
    return this.text.slice(before);
  }

  /** Sends one request as a client library does. */
  ask(...args: readonly (string | number)[]): Promise<string> {
    return this.say(encode(...args));
  }
}

/** A request as client libraries write it. */
export function encode(...args: readonly (string | number)[]): string {
  const bulks = args.map((arg) => {
    const bytes = Buffer.from(String(arg)).toString("latin1");
    return `$${bytes.length}\r\n${bytes}\r\n`;
  });
  return `*${args.length}\r\n${bulks.join("")}`;
}

/** The five integers of a reply to a check, as text. */
export function five(...numbers: readonly number[]): string {
  return `*5\r\n${numbers.map((number) => `:${number}\r\n`).join("")}`;
}

/** A raw connection to a listener that collects what comes. */
export class RawClient {
  readonly socket: Socket;
  text = "";
  readonly ended: Promise<void>;

  constructor(target: { readonly path: string } | { readonly port: number }) {
    this.socket = "path" in target ? connect(target) : connect({ ...target, host: "127.0.0.1" });
    this.socket.on("data", (chunk: Buffer) => {
      this.text += chunk.toString("latin1");
    });
    this.socket.on("error", () => {});
    this.ended = new Promise((resolve) => this.socket.once("close", () => resolve()));
  }

  /** Sends text, and waits until something is answered. */
  async say(text: string): Promise<string> {
    const before = this.text.length;
    this.socket.write(text, "latin1");
    await once(this.socket, "data");
    return this.text.slice(before);
  }
}
