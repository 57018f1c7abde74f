/**
 * Lists the pods behind a Service from its EndpointSlices and watches them, over the plain API.
 *
 * One list, then watches that each go on from the version at which the last one ended. States:
 *   - listing: no version is known. Left for watching when a list has come.
 *   - watching: events change the slices and move the version on; bookmarks move it on as well.
 *     The server ends a watch after some minutes, and the next one begins. When the server says
 *     that
 *     the version is too old (410, as the answer or inside the stream), back to listing.
 * Every other end is a failure: a pause that grows, and the same state again with what is known. A
 * server that hangs looks the same, because the answer, the list and the silence within a watch
 * have a time limit.
 */
import type { IncomingMessage } from "node:http";
import type { Clock } from "../ports/clock.ts";
import type { Random } from "../ports/random.ts";
import { ApiError, ApiServer, type ApiServerOptions } from "./api-server.ts";
import { EndpointSlices, field } from "./endpoint-slices.ts";
import type { PodListing } from "./pod-listing.ts";
import type { PodSource } from "./pod-source.ts";
import { RetryPause } from "./retry-pause.ts";
import { WatchLines } from "./watch-lines.ts";

export interface KubernetesTiming {
  /** Until the head of an answer, and until the end of a list. */
  readonly answerWithinMs: number;
  /** The server sends a bookmark about once a minute when nothing else happens. */
  readonly silenceMs: number;
  /**
   * Shortest life that is asked for a watch; up to a quarter more, so that pods do not act as one.
   */
  readonly watchMs: number;
}

const TIMING: KubernetesTiming = {
  answerWithinMs: 10_000,
  silenceMs: 90_000,
  watchMs: 240_000,
};

/** A watch that ends sooner was no use, however politely it ended. */
const WATCH_LEAST_US = 1_000_000;
const LIST_LENGTH_MAX: number = 64 * 1_024 * 1_024;

export interface KubernetesSourceOptions extends ApiServerOptions {
  readonly service: string;
  /** That of this pod by default. */
  readonly namespace: string | undefined;
  readonly listing: PodListing;
  readonly clock: Clock;
  readonly random: Random;
  readonly timing?: Partial<KubernetesTiming>;
}

export class KubernetesSource implements PodSource {
  private readonly options: KubernetesSourceOptions;
  private readonly timing: KubernetesTiming;
  private readonly api: ApiServer;
  private readonly slices = new EndpointSlices();
  private readonly pause: RetryPause;
  private readonly stopped = new AbortController();
  /** Where a watch goes on; undefined while listing. */
  private version: string | undefined;
  /** Only the first list may come from the server's cache: it can be older than what was seen. */
  private hasListed = false;
  /** Listing again at once is right once; a server that goes on like that is in trouble. */
  private hasExpired = false;

  constructor(options: KubernetesSourceOptions) {
    this.options = options;
    this.timing = { ...TIMING, ...options.timing };
    this.api = new ApiServer(options);
    this.pause = new RetryPause(options.random);
  }

  start(): void {
    void this.run(); // never rejects: trouble is told to the listing
  }

  stop(): void {
    this.stopped.abort();
  }

  private async run(): Promise<void> {
    while (!this.stopped.signal.aborted) {
      const trouble = await this.attempt();
      if (this.stopped.signal.aborted) return;
      if (trouble === undefined) {
        this.pause.reset();
        this.hasExpired = false;
        continue;
      }
      if (trouble instanceof ApiError && trouble.isExpired) {
        const isFirst = !this.hasExpired && this.version !== undefined;
        this.version = undefined;
        this.hasExpired = true;
        if (isFirst) continue;
      }
      this.options.listing.failed(trouble);
      await this.wait(this.pause.next(trouble instanceof ApiError ? trouble.retryAfterMs : 0));
    }
  }

  /** A list if need be, and one watch; its trouble, or undefined after a watch of some use. */
  private async attempt(): Promise<unknown> {
    const { clock } = this.options;
    try {
      if (this.version === undefined) await this.list();
      const beganAt = clock.monotonicUs();
      await this.watch();
      const tookUs = clock.monotonicUs() - beganAt;
      return tookUs < WATCH_LEAST_US ? new Error("the watch ended at once") : undefined;
    } catch (error) {
      return error;
    }
  }

  private async list(): Promise<void> {
    const call = this.begin(this.timing.answerWithinMs, "the list was not complete");
    try {
      const answer = await this.get(this.hasListed ? {} : { resourceVersion: "0" }, call.signal);
      const list: unknown = JSON.parse(await textOf(answer));
      const version = field(field(list, "metadata"), "resourceVersion");
      const items = field(list, "items") ?? [];
      if (typeof version !== "string" || !Array.isArray(items)) {
        throw new Error("the answer of the API server is no list of endpoint slices");
      }
      this.slices.replace(items);
      this.version = version;
      this.hasListed = true;
      this.options.listing.counted(this.slices.pods);
    } catch (error) {
      throw call.trouble(error);
    } finally {
      call.end();
    }
  }

  private async watch(): Promise<void> {
    const { watchMs, silenceMs } = this.timing;
    const lifeMs = watchMs * (1 + 0.25 * this.options.random.draw());
    const call = this.begin(silenceMs, "nothing came on the watch");
    try {
      const query = {
        watch: "1",
        allowWatchBookmarks: "true",
        resourceVersion: this.version ?? "",
        timeoutSeconds: `${Math.ceil(lifeMs / 1_000)}`,
      };
      const answer = await this.get(query, call.signal);
      const lines = new WatchLines();
      // What was listed before still holds, and its source answers.
      this.options.listing.counted(this.slices.pods);
      for await (const piece of answer.setEncoding("utf8")) {
        call.refresh();
        for (const line of lines.take(piece as string)) this.follow(line);
      }
      if (lines.isInside) throw new Error("the watch ended inside an event");
    } catch (error) {
      throw call.trouble(error);
    } finally {
      call.end();
    }
  }

  private follow(line: string): void {
    try {
      this.apply(line);
    } catch (error) {
      // What the event would have changed is not known: only a list can tell.
      if (!(error instanceof ApiError && error.isExpired)) this.version = undefined;
      throw error;
    }
  }

  private apply(line: string): void {
    if (line.trim() === "") return;
    const event: unknown = JSON.parse(line);
    const type = field(event, "type");
    const object = field(event, "object");
    if (type === "ERROR") {
      const detail = String(field(object, "message") ?? "an error without a message");
      const code = Number(field(object, "code") ?? 0);
      throw new ApiError(code, detail);
    }
    if (type === "ADDED" || type === "MODIFIED") this.slices.put(object);
    else if (type === "DELETED") this.slices.remove(object);
    else if (type !== "BOOKMARK") throw new Error(`an unknown event of the watch: ${String(type)}`);
    const version = field(field(object, "metadata"), "resourceVersion");
    if (typeof version === "string") this.version = version;
    if (type !== "BOOKMARK") this.options.listing.counted(this.slices.pods);
  }

  private async get(query: Record<string, string>, signal: AbortSignal): Promise<IncomingMessage> {
    const namespace = this.options.namespace ?? (await this.api.namespace());
    const labelSelector = `kubernetes.io/service-name=${this.options.service}`;
    const search = new URLSearchParams({ labelSelector, ...query });
    const path = `/apis/discovery.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}`;
    const { answerWithinMs } = this.timing;
    return this.api.get({ path: `${path}/endpointslices?${search}`, answerWithinMs, signal });
  }

  /** A call that ends with the source, or when nothing refreshes it for so long. */
  private begin(withinMs: number, complaint: string): Call {
    const ended = new AbortController();
    const late = new Error(`${complaint} within ${withinMs} ms`);
    const timer = setTimeout(() => ended.abort(late), withinMs);
    const stop = (): void => ended.abort();
    this.stopped.signal.addEventListener("abort", stop);
    return {
      signal: ended.signal,
      refresh: () => timer.refresh(),
      trouble: (error) => (ended.signal.reason === late ? late : error),
      end: () => {
        clearTimeout(timer);
        this.stopped.signal.removeEventListener("abort", stop);
        // A body that is not read to its end would keep the connection.
        ended.abort();
      },
    };
  }

  private wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.stopped.signal.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.stopped.signal.addEventListener("abort", done);
    });
  }
}

interface Call {
  readonly signal: AbortSignal;
  readonly refresh: () => void;
  /** What to say instead of "aborted" when the time was over. */
  readonly trouble: (error: unknown) => unknown;
  readonly end: () => void;
}

async function textOf(answer: IncomingMessage): Promise<string> {
  const pieces: string[] = [];
  let length = 0;
  for await (const piece of answer.setEncoding("utf8")) {
    length += (piece as string).length;
    if (length > LIST_LENGTH_MAX) throw new Error("the list of endpoint slices is too long");
    pieces.push(piece as string);
  }
  return pieces.join("");
}
