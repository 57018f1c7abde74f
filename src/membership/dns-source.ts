/**
 * Counts the pods behind a headless Service by its addresses in DNS.
 *
 * A pod has one address of each family that the cluster uses, so the larger of the two counts is
 * the number of pods. An answer that names nobody is a failure like no answer: this pod at least
 * is there, and a server that has just started may not know anybody yet. Large answers come over
 * TCP; the resolver sees to that.
 */
import { Resolver } from "node:dns/promises";
import { readFile } from "node:fs/promises";
import type { Random } from "../ports/random.ts";
import type { PodListing } from "./pod-listing.ts";
import type { PodSource } from "./pod-source.ts";
import { searchNames } from "./search-names.ts";

const PAUSE_MS = 3_000;
const QUERY_TIMEOUT_MS = 1_000;
const QUERY_TRIES = 2;
const UNREACHABLE: ReadonlySet<string> = new Set(["ETIMEOUT", "ECONNREFUSED"]);

export interface DnsSourceOptions {
  /** Name of the Service; looked for in the search domains of resolv.conf as other programs do. */
  readonly service: string;
  /** A server to ask instead of those of resolv.conf. */
  readonly resolver: { readonly host: string; readonly port: number } | undefined;
  readonly listing: PodListing;
  readonly random: Random;
  /** Between two questions, before jitter. */
  readonly pauseMs?: number;
  readonly resolvConf?: string;
}

export class DnsSource implements PodSource {
  private readonly options: DnsSourceOptions;
  private readonly resolver = new Resolver({ timeout: QUERY_TIMEOUT_MS, tries: QUERY_TRIES });
  /** The full name that was answered last; asked first. */
  private known: string | undefined;
  private timer: NodeJS.Timeout | undefined;
  private stopped = false;

  constructor(options: DnsSourceOptions) {
    this.options = options;
    const server = options.resolver;
    if (server === undefined) return;
    const host = server.host.includes(":") ? `[${server.host}]` : server.host;
    this.resolver.setServers([`${host}:${server.port}`]);
  }

  start(): void {
    void this.ask();
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
    this.resolver.cancel();
  }

  /** One question after the other; rejects only with what a listener throws, which is a bug. */
  private async ask(): Promise<void> {
    const { listing, random, pauseMs = PAUSE_MS } = this.options;
    const count = await this.count();
    if (this.stopped) return;
    this.timer = setTimeout(() => void this.ask(), pauseMs * (0.9 + 0.2 * random.draw()));
    if (typeof count === "number") listing.counted(count);
    else listing.failed(count);
  }

  /** The number of pods, or why there is none. */
  private async count(): Promise<number | Error> {
    let trouble: Error | undefined;
    for (const name of await this.names()) {
      const families = await Promise.all([
        addresses(this.resolver.resolve4(name)),
        addresses(this.resolver.resolve6(name)),
      ]);
      const pods = families.map((family) => (typeof family === "number" ? family : 0));
      const most = Math.max(...pods);
      if (most > 0) {
        this.known = name;
        return most;
      }
      const failure = families.find((family) => family instanceof Error);
      trouble ??= failure;
      // A server that does not answer would be as silent about every other name.
      if (failure !== undefined && UNREACHABLE.has(codeOf(failure))) break;
    }
    return trouble ?? new Error(`DNS knows no address of ${this.options.service}`);
  }

  private async names(): Promise<readonly string[]> {
    const { service, resolvConf = "/etc/resolv.conf" } = this.options;
    const text = await readFile(resolvConf, "utf8").catch(() => "");
    const names = searchNames(service, text);
    const { known } = this;
    return known === undefined ? names : [known, ...names.filter((name) => name !== known)];
  }
}

/** How many there are; a name that is not known, or not in this family, has none. */
async function addresses(answer: Promise<readonly string[]>): Promise<number | Error> {
  try {
    return new Set(await answer).size;
  } catch (error) {
    const failure = error instanceof Error ? error : new Error(String(error));
    return ["ENODATA", "ENOTFOUND"].includes(codeOf(failure)) ? 0 : failure;
  }
}

function codeOf(error: Error): string {
  return String((error as NodeJS.ErrnoException).code);
}
