/** What the ops listener shows of a sidecar, whether it is one process or several. */
import type { Address } from "./config/address.ts";
import type { LiveConfig } from "./config/reload.ts";
import type { DescriptorFigures } from "./observe/descriptor-metrics.ts";
import type { Observation } from "./observe/observation.ts";
import type { ProcessMetrics } from "./observe/pooled-processes.ts";
import type { Observed, WorkerCounts } from "./ports/observed.ts";
import { type HttpListener, listenHttp } from "./server/listener.ts";
import { createOpsHandler, type ObservedEngine } from "./server/ops.ts";
import { keyDigest } from "./store/redis/keys.ts";

export interface OpsParts {
  readonly version: string;
  readonly live: LiveConfig;
  readonly store: "embedded" | "redis";
  readonly engine: ObservedEngine;
  readonly observation: Observation;
  /** Where the rankings of keys are; `observation` when left out. */
  readonly observed?: Observed;
  started(): boolean;
  draining(): boolean;
  forwardUnmatched(): number;
  descriptors(): DescriptorFigures;
  onFault(error: unknown): void;
  /** Where there are several processes. */
  readonly workers?: {
    figures(): WorkerCounts;
    processes(): readonly ProcessMetrics[];
    /** Fetches what the others know; never rejects. */
    refresh(): Promise<void>;
  };
}

/** Pages whose figures are fetched when they are asked for. */
const FRESH = /^\/(metrics|status)($|\?)/;
/** Those who watch ask for it every second or two. */
const WATCHED = /^\/status\?(.*&)?history/;

/** @throws {ListenError} When the address cannot be bound. */
export function openOps(address: Address, parts: OpsParts): Promise<HttpListener> {
  const { version, live, store, engine, observation, workers, onFault } = parts;
  const { fleet, podId } = live.config;
  const metrics = observation.metrics({
    figures: () => engine.figures(),
    config: () => live.standing(),
    forwardUnmatched: () => parts.forwardUnmatched(),
    descriptors: () => parts.descriptors(),
    version,
    workers: workers && (() => workers.figures()),
    processes: workers && (() => workers.processes()),
  });
  const identity = { version, fleet, podId, store };
  const handler = createOpsHandler({
    started: () => parts.started(),
    draining: () => parts.draining(),
    identity: () => ({ ...identity, uptimeSeconds: process.uptime(), config: live.standing() }),
    workers: workers && (() => workers.figures()),
    engine,
    observed: parts.observed ?? observation,
    showKeys: () => live.config.ops.showKeys,
    keyDigest,
    metrics: (accept) => metrics.render(accept),
    onUnexpectedError: onFault,
  });
  const refreshLately = lately(observation, workers?.refresh);
  const fresh: typeof handler = (req, res) => {
    const { url = "" } = req;
    if (workers === undefined || !FRESH.test(url)) handler(req, res);
    else {
      const refreshed = WATCHED.test(url) ? refreshLately() : workers.refresh();
      refreshed.then(() => handler(req, res), onFault);
    }
  };
  return listenHttp(fresh, { kind: "tcp", ...address }, {}, onFault);
}

/** However many watch, each worker looks at all its keys for them once in a second at most. */
function lately(
  { history }: Observation,
  refresh: () => Promise<void> = async () => {},
): () => Promise<void> {
  let second: number | undefined;
  let refreshed = Promise.resolve();
  return () => {
    if (second !== history.last) {
      second = history.last;
      refreshed = refresh();
    }
    return refreshed;
  };
}
