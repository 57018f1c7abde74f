/** The gRPC listener on a real Unix socket, with the real engine on a clock that the test moves. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import type { Check, Decision } from "../../src/core/decision.ts";
import type { Limit } from "../../src/core/limit.ts";
import { createDescriptorMatcher } from "../../src/envoy/descriptor-tree.ts";
import type { Decider } from "../../src/ports/decider.ts";
import { listenGrpc } from "../../src/server/grpc/grpc-listener.ts";
import type { HeaderShape } from "../../src/server/headers.ts";
import { createRateHeaders } from "../../src/server/headers.ts";
import type { HttpListener } from "../../src/server/listener.ts";
import { RateLimitService } from "../../src/server/rate-limit-service.ts";
import { type RuleOptions, rulesOf } from "../envoy/rules.ts";
import { SoleEngine } from "../support/sole-engine.ts";
import {
  type PlainDescriptor,
  type PlainRequest,
  type PlainResponse,
  packages,
} from "./protobuf-js.ts";

/** The real engine of a pod without a store as a decider; tests may put themselves in between. */
export class EngineDecider implements Decider {
  readonly sole: SoleEngine;
  /** Set to make every decision wait for the promise. */
  hold: (() => Promise<void>) | undefined;
  /** Set to change decisions on their way. */
  alter: ((decision: Decision) => Decision) | undefined;
  /** Names of limits that a reload took away. */
  readonly removed: Set<string> = new Set<string>();
  decided = 0;
  reported = 0;
  readonly #limits: readonly Limit[];

  constructor(limits: readonly Limit[]) {
    this.sole = new SoleEngine(limits);
    this.#limits = limits;
  }

  limit(name: string): Limit | undefined {
    if (this.removed.has(name)) return undefined;
    return this.#limits.find((limit) => limit.name === name);
  }

  limits(): readonly Limit[] {
    return this.#limits;
  }

  standing(limit: Limit): ReturnType<Decider["standing"]> {
    return this.sole.engine.standing(limit);
  }

  decide(checks: readonly Check[]): readonly Decision[] | Promise<readonly Decision[]> {
    this.decided += 1;
    const { alter } = this;
    if (this.hold === undefined && alter === undefined) return this.sole.decide(checks);
    const decisions = this.sole.checkAll(checks);
    const seen = alter === undefined ? decisions : decisions.map(alter);
    return this.hold === undefined ? seen : this.hold().then(() => seen);
  }

  report(check: Check): Decision {
    this.reported += 1;
    return this.sole.engine.report(this.sole.now, check);
  }
}

export interface RateLimitDoor {
  readonly decider: EngineDecider;
  readonly service: RateLimitService;
  readonly listener: HttpListener;
  readonly socket: string;
  readonly faults: unknown[];
  /** @throws {ServiceError} When the call ends with another status than OK. */
  ask(request: PlainRequest): Promise<PlainResponse>;
  /** The status code of a call that fails. */
  refusal(request: PlainRequest): Promise<ServiceError>;
  close(): Promise<void>;
}

export interface DoorOptions extends RuleOptions {
  readonly headers?: readonly HeaderShape[];
}

const doors: RateLimitDoor[] = [];

/** Opens a door with the rules of one file; `closeDoors` closes all. */
export async function openDoor(rules: string, options: DoorOptions = {}): Promise<RateLimitDoor> {
  const folder = mkdtempSync(join(tmpdir(), "aliquot-grpc-"));
  const { domains, limits } = rulesOf(rules, options);
  const decider = new EngineDecider(limits);
  const matcher = createDescriptorMatcher(domains);
  const rateHeaders = createRateHeaders(options.headers ?? ["ietf"], () => 0);
  const service = new RateLimitService({ decider, matcher: () => matcher, rateHeaders });
  const faults: unknown[] = [];
  const socket = join(folder, "grpc.sock");
  const listener = await listenGrpc(
    {
      service,
      clock: { monotonicUs: () => decider.sole.now },
      observeUs: () => {},
      onUnexpectedError: (error) => faults.push(error),
    },
    { kind: "unix", path: socket, mode: 0o660 },
  );
  const client = connect(socket);
  const ask = (request: PlainRequest): Promise<PlainResponse> => call(client, request);
  const door: RateLimitDoor = {
    decider,
    service,
    listener,
    socket,
    faults,
    ask,
    refusal: (request) =>
      ask(request).then(
        (answer) => {
          throw new Error(`not refused: ${JSON.stringify(answer)}`);
        },
        (error: ServiceError) => error,
      ),
    close: async () => {
      client.close();
      await listener.stop(1_000);
      rmSync(folder, { recursive: true, force: true });
    },
  };
  doors.push(door);
  return door;
}

export async function closeDoors(): Promise<void> {
  await Promise.all(doors.splice(0).map((door) => door.close()));
}

export function connect(socket: string): Client {
  const { RateLimitService: Constructor } = packages.envoy.service.ratelimit.v3;
  return new Constructor(`unix://${socket}`, credentials.createInsecure());
}

type Unary = (
  request: PlainRequest,
  metadata: Metadata,
  options: object,
  callback: (error: ServiceError | null, response: PlainResponse) => void,
) => void;

/** One call, never longer than 10 s. */
export function call(client: Client, request: PlainRequest): Promise<PlainResponse> {
  return new Promise((resolve, reject) => {
    const { ShouldRateLimit } = client as unknown as { ShouldRateLimit: Unary };
    const options = { deadline: new Date(Date.now() + 10_000) };
    ShouldRateLimit.call(client, request, new Metadata(), options, (error, response) =>
      error === null ? resolve(response) : reject(error),
    );
  });
}

/** `plan=free user=bob` as a descriptor. */
export function descriptor(text: string, more: Partial<PlainDescriptor> = {}): PlainDescriptor {
  const entries = text.split(" ").map((entry) => {
    const at = entry.indexOf("=");
    return { key: entry.slice(0, at), value: entry.slice(at + 1) };
  });
  return { entries, ...more };
}

/** A request of domain `d`. */
export function request(...descriptors: readonly (string | PlainDescriptor)[]): PlainRequest {
  return {
    domain: "d",
    descriptors: descriptors.map((each) => (typeof each === "string" ? descriptor(each) : each)),
  };
}

export const OK = 1;
export const OVER_LIMIT = 2;

/** `OK 4`, `OVER 0` and the like: a status's code and what remains, in order. */
export function codes(response: PlainResponse): string {
  const word = (code: number): string => (code === OK ? "OK" : code === OVER_LIMIT ? "OVER" : "?");
  const statuses = response.statuses.map(
    ({ code, limitRemaining }) => `${word(code)} ${limitRemaining}`,
  );
  return `${word(response.overallCode)}: ${statuses.join(", ")}`;
}
