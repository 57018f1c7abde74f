/** Everything that takes checks: HTTP, gRPC and RESP, on Unix sockets and TCP, on one decider. */
import type { DurationUs } from "../core/units.ts";
import type { Clock } from "../ports/clock.ts";
import type { Decider } from "../ports/decider.ts";
import type { DescriptorMatcher } from "../ports/descriptors.ts";
import { ChargingDecider } from "./denied-charges.ts";
import type { ForwardOptions } from "./forward.ts";
import { createRateHeaders, type HeaderShapes } from "./headers.ts";
import { createHttpApi } from "./http-api.ts";
import { type HttpListener, type ListenAddress, listenHttp } from "./listener.ts";
import { createRateLimitJson } from "./rate-limit-json.ts";
import { RateLimitService } from "./rate-limit-service.ts";
import type { InlineTermsInForce } from "./resp/check-commands.ts";
import { listenResp } from "./resp/resp-listener.ts";

/** How a check came in, as metrics tell it. */
export type Door = "http" | "uds" | "grpc" | "forward" | "resp";

export interface DoorParts {
  readonly decider: Decider;
  readonly clock: Clock;
  readonly headers: HeaderShapes;
  /** Wall clock in ms since the epoch, for the `x-epoch` headers. */
  readonly wallMs: () => number;
  readonly policies: ForwardOptions["policies"];
  /** The rules for Envoy in force. */
  readonly matcher: () => DescriptorMatcher;
  /** What holds for limits that callers bring over RESP. */
  readonly inline: () => InlineTermsInForce;
  /** Of the sidecar. */
  readonly version: string;
  readonly observeUs: (door: Door, duration: DurationUs) => void;
  /** A request met a bug, or a connection could not be accepted. */
  readonly onFault: (error: unknown) => void;
}

interface DoorAddresses {
  readonly socket: string | undefined;
  readonly tcp: { readonly host: string; readonly port: number } | undefined;
}

export interface DoorsListen {
  readonly http: DoorAddresses;
  readonly grpc: DoorAddresses;
  readonly resp: DoorAddresses;
  /** Permission bits of the sockets. */
  readonly socketMode: number;
  /** By path: the names under which another process binds and claims the sockets for this one. */
  readonly boundAs?: ReadonlyMap<string, string> | undefined;
}

/** Where the doors are open; undefined where there is none. */
export interface OpenDoors {
  httpTcp?: string;
  httpSocket?: string;
  grpcTcp?: string;
  grpcSocket?: string;
  respTcp?: string;
  respSocket?: string;
}

export class FrontDoors {
  /** Counts descriptors that no rule was for, and those that metrics may show. */
  readonly envoy: RateLimitService;
  readonly addresses: OpenDoors = {};
  readonly #parts: DoorParts;
  readonly #listeners: HttpListener[] = [];

  constructor(parts: DoorParts) {
    this.#parts = parts;
    const { decider, matcher, headers, wallMs } = parts;
    const rateHeaders = createRateHeaders(headers, wallMs);
    this.envoy = new RateLimitService({ decider, matcher, rateHeaders });
  }

  /** @throws {ListenError} When one cannot be opened; the others stay open until `stop`. */
  async open({ http, grpc, resp, socketMode: mode, boundAs }: DoorsListen): Promise<void> {
    const { addresses } = this;
    const unix = (path: string): ListenAddress => {
      return { kind: "unix", path, mode, boundAs: boundAs?.get(path) };
    };
    if (http.socket !== undefined) {
      addresses.httpSocket = await this.#openHttp("uds", unix(http.socket));
    }
    if (http.tcp !== undefined) {
      addresses.httpTcp = await this.#openHttp("http", { kind: "tcp", ...http.tcp });
    }
    if (grpc.socket !== undefined) addresses.grpcSocket = await this.#openGrpc(unix(grpc.socket));
    if (grpc.tcp !== undefined) {
      addresses.grpcTcp = await this.#openGrpc({ kind: "tcp", ...grpc.tcp });
    }
    if (resp.socket !== undefined) addresses.respSocket = await this.#openResp(unix(resp.socket));
    if (resp.tcp !== undefined) {
      addresses.respTcp = await this.#openResp({ kind: "tcp", ...resp.tcp });
    }
  }

  /** Stops every listener: what is in flight is answered, what takes longer is cut. */
  async stop(timeoutMs: number): Promise<void> {
    await Promise.all(this.#listeners.map((listener) => listener.stop(timeoutMs)));
  }

  async #openHttp(door: Door, address: ListenAddress): Promise<string> {
    const { decider, clock, headers, wallMs, policies, observeUs, onFault } = this.#parts;
    const observe = (us: DurationUs): void => observeUs(door, us);
    const api = createHttpApi(new ChargingDecider(decider), {
      clock,
      headers,
      wallMs,
      observeUs: observe,
      forward: { policies, observeUs: (us) => observeUs("forward", us) },
      rateLimitJson: createRateLimitJson({ service: this.envoy, clock, observeUs: observe }),
      onUnexpectedError: onFault,
    });
    const listener = await listenHttp(api, address, {}, onFault);
    this.#listeners.push(listener);
    return listener.address;
  }

  async #openGrpc(address: ListenAddress): Promise<string> {
    const { clock, observeUs, onFault } = this.#parts;
    const parts = {
      service: this.envoy,
      clock,
      observeUs: (us: DurationUs) => observeUs("grpc", us),
      onUnexpectedError: onFault,
      onAcceptError: onFault,
    };
    // Loaded for whom it is opened: grpc-js is a third of the code, and HTTP answers meanwhile.
    const { listenGrpc } = await import("./grpc/grpc-listener.ts");
    const listener = await listenGrpc(parts, address);
    this.#listeners.push(listener);
    return listener.address;
  }

  async #openResp(address: ListenAddress): Promise<string> {
    const { decider, clock, inline, version, observeUs, onFault } = this.#parts;
    const parts = {
      decider: new ChargingDecider(decider),
      clock,
      inline,
      version,
      observeUs: (us: DurationUs) => observeUs("resp", us),
      onUnexpectedError: onFault,
    };
    const listener = await listenResp(parts, address, {}, onFault);
    this.#listeners.push(listener);
    return listener.address;
  }
}
