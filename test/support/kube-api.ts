/**
 * A Kubernetes API server as far as EndpointSlices go: HTTPS with an authority of its own, tokens,
 * list and watch with resource versions, bookmarks, 410 in both forms, and the troubles that real
 * ones have: they hang, reset connections, forget versions and cut their answers anywhere.
 */
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TlsAuthority } from "./tls-authority.ts";

export const NAMESPACE = "shop";
export const SERVICE = "web";
/** What Kubernetes puts into one slice unless told otherwise. */
const SLICE_ENDPOINTS_MAX = 100;

export interface Endpoint {
  readonly addresses: readonly string[];
  readonly conditions?: {
    readonly ready?: boolean | null;
    readonly serving?: boolean | null;
    readonly terminating?: boolean | null;
  };
  readonly targetRef?: { readonly kind: string; readonly name: string; readonly uid: string };
}

export type SliceObject = Readonly<Record<string, unknown>>;

interface Event {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly object: SliceObject;
  readonly version: number;
}

interface Watcher {
  readonly response: ServerResponse;
  readonly timer: NodeJS.Timeout;
}

/** A pod that is ready. */
export function podEndpoint(index: number, conditions: Endpoint["conditions"] = {}): Endpoint {
  const address = `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`;
  return {
    addresses: [address],
    conditions: { ready: true, serving: true, terminating: false, ...conditions },
    targetRef: { kind: "Pod", name: `web-é-${index}`, uid: `uid-${index}` },
  };
}

export class KubeApi {
  /** As it is mounted into a pod. */
  readonly serviceAccount: string = mkdtempSync(join(tmpdir(), "aliquot-account-"));
  /** Queries of all requests that were let in, in order. */
  readonly lists: URLSearchParams[] = [];
  readonly watches: URLSearchParams[] = [];
  refused = 0;
  /** When each request came that was not left hanging, in ms. */
  readonly askedAt: number[] = [];
  /** No version is ever new enough to watch from. */
  forgetsAll = false;
  /** The form in which a version that is too old is told. */
  expiry: "status" | "stream" = "stream";
  /** Bytes of each write; a piece ends where it ends, also inside a character. */
  pieceBytes: number = Number.POSITIVE_INFINITY;
  /** Answered to every request instead of what was asked for. */
  failure: { readonly status: number; readonly headers?: Record<string, string> } | undefined;
  private readonly authority = new TlsAuthority();
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();
  private readonly watchers = new Set<Watcher>();
  private readonly slices = new Map<string, SliceObject>();
  private events: Event[] = [];
  private version = 100;
  private oldest = 0;
  private token = "";
  private hanging = false;

  constructor() {
    const { certFile, keyFile } = this.authority.issue("api", { ip: ["127.0.0.1"] });
    const tls = { cert: readFileSync(certFile), key: readFileSync(keyFile) };
    this.server = createServer(tls, (incoming, response) => this.answer(incoming, response));
    this.server.on("connection", (socket: Socket) => {
      this.sockets.add(socket);
      socket.on("close", () => this.sockets.delete(socket));
      socket.on("error", () => {});
    });
    this.write("ca.crt", readFileSync(this.authority.caFile, "utf8"));
    this.write("namespace", `${NAMESPACE}\n`);
    this.rotateToken("first");
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen(0, "127.0.0.1", resolve));
  }

  get address(): { readonly host: string; readonly port: number } {
    return { host: "127.0.0.1", port: (this.server.address() as AddressInfo).port };
  }

  get openWatches(): number {
    return this.watchers.size;
  }

  get connections(): number {
    return this.sockets.size;
  }

  /** Another token is accepted, and mounted unless told otherwise. */
  rotateToken(token: string, isMounted = true): void {
    this.token = token;
    if (isMounted) this.write("token", `${token}\n`);
  }

  /** Pods 0 to `count` - 1 are ready, in slices of 100; nothing else is there. */
  setPods(count: number): void {
    const wanted = Math.ceil(count / SLICE_ENDPOINTS_MAX);
    for (let i = 0; i < wanted; i += 1) {
      const first = i * SLICE_ENDPOINTS_MAX;
      const size = Math.min(SLICE_ENDPOINTS_MAX, count - first);
      const endpoints = Array.from({ length: size }, (_, pod) => podEndpoint(first + pod));
      this.put(`web-${i}`, endpoints);
    }
    for (const name of [...this.slices.keys()]) {
      if (Number(/-(\d+)$/.exec(name)?.[1]) >= wanted) this.remove(name);
    }
  }

  put(name: string, endpoints: readonly Endpoint[] | null): void {
    this.version += 1;
    const metadata = { name, namespace: NAMESPACE, resourceVersion: `${this.version}` };
    const object = { kind: "EndpointSlice", metadata, addressType: "IPv4", endpoints };
    const type = this.slices.has(name) ? "MODIFIED" : "ADDED";
    this.slices.set(name, object);
    this.publish({ type, object, version: this.version });
  }

  remove(name: string): void {
    const object = this.slices.get(name);
    if (object === undefined) return;
    this.version += 1;
    this.slices.delete(name);
    const metadata = { name, namespace: NAMESPACE, resourceVersion: `${this.version}` };
    this.publish({ type: "DELETED", object: { ...object, metadata }, version: this.version });
  }

  /** Other objects of the cluster change: the version moves on, and watchers hear it so. */
  bookmark(): void {
    this.version += 50;
    const metadata = { resourceVersion: `${this.version}` };
    this.sendAll({ type: "BOOKMARK", object: { kind: "EndpointSlice", metadata } });
  }

  /** Forgets all events: whoever has not seen the last one must list again. */
  compact(): void {
    this.events = [];
    this.oldest = this.version;
  }

  /** Sends a text to all watchers, as it is. */
  sendRaw(text: string): void {
    for (const { response } of this.watchers) response.write(text);
  }

  /** Connections stay open, and nothing is answered or sent any more. */
  hang(): void {
    this.hanging = true;
  }

  recover(): void {
    this.hanging = false;
    // What hung stays without an answer, as after a failover behind a load balancer.
  }

  /** Ends every watch as a server does when its time is over. */
  endWatches(): void {
    for (const watcher of [...this.watchers]) this.end(watcher);
  }

  /** Cuts every connection. */
  reset(): void {
    for (const socket of this.sockets) socket.resetAndDestroy();
  }

  async dispose(): Promise<void> {
    for (const { timer } of this.watchers) clearTimeout(timer);
    for (const socket of this.sockets) socket.destroy();
    if (this.server.listening) await new Promise((resolve) => this.server.close(resolve));
    rmSync(this.serviceAccount, { recursive: true, force: true });
    this.authority.dispose();
  }

  private write(name: string, text: string): void {
    const path = join(this.serviceAccount, name);
    writeFileSync(`${path}.new`, text);
    renameSync(`${path}.new`, path);
  }

  private answer(incoming: IncomingMessage, response: ServerResponse): void {
    if (this.hanging) return;
    this.askedAt.push(performance.now());
    const { pathname, searchParams } = new URL(incoming.url ?? "/", "https://api");
    const refuse = (code: number, message: string, headers: Record<string, string> = {}): void => {
      response.writeHead(code, { "content-type": "application/json", ...headers });
      response.end(JSON.stringify({ kind: "Status", status: "Failure", message, code }));
    };
    if (this.failure !== undefined) {
      refuse(this.failure.status, "as the test wants it", this.failure.headers);
      return;
    }
    if (incoming.headers.authorization !== `Bearer ${this.token}`) {
      this.refused += 1;
      refuse(401, "Unauthorized");
      return;
    }
    const collection = `/apis/discovery.k8s.io/v1/namespaces/${NAMESPACE}/endpointslices`;
    const selector = searchParams.get("labelSelector");
    if (pathname !== collection || selector !== `kubernetes.io/service-name=${SERVICE}`) {
      refuse(403, `no right to ${pathname} ${selector}`);
      return;
    }
    if (searchParams.get("watch") === "1") this.watch(searchParams, response, refuse);
    else this.list(searchParams, response);
  }

  private list(query: URLSearchParams, response: ServerResponse): void {
    this.lists.push(query);
    const metadata = { resourceVersion: `${this.version}` };
    const items = [...this.slices.values()];
    response.writeHead(200, { "content-type": "application/json" });
    this.send(response, JSON.stringify({ kind: "EndpointSliceList", metadata, items }));
    response.end();
  }

  private watch(
    query: URLSearchParams,
    response: ServerResponse,
    refuse: (code: number, message: string) => void,
  ): void {
    this.watches.push(query);
    const from = Number(query.get("resourceVersion"));
    const isExpired = this.forgetsAll || from < this.oldest;
    if (isExpired && this.expiry === "status") {
      refuse(410, `too old resource version: ${from} (${this.oldest})`);
      return;
    }
    response.writeHead(200, { "content-type": "application/json" });
    response.flushHeaders();
    if (isExpired) {
      const object = { kind: "Status", code: 410, reason: "Expired", message: "too old" };
      this.sendEvent(response, { type: "ERROR", object });
      response.end();
      return;
    }
    for (const event of this.events) if (event.version > from) this.sendEvent(response, event);
    const seconds = Number(query.get("timeoutSeconds"));
    const timer = setTimeout(() => this.end(watcher), seconds * 1_000);
    const watcher: Watcher = { response, timer };
    this.watchers.add(watcher);
    response.on("close", () => this.forget(watcher));
  }

  private publish(event: Event): void {
    this.events.push(event);
    this.sendAll(event);
  }

  private sendAll(event: { type: string; object: unknown }): void {
    if (this.hanging) return;
    for (const { response } of this.watchers) this.sendEvent(response, event);
  }

  private sendEvent(response: ServerResponse, event: { type: string; object: unknown }): void {
    this.send(response, `${JSON.stringify({ type: event.type, object: event.object })}\n`);
  }

  /** Each write is a chunk of its own. */
  private send(response: ServerResponse, text: string): void {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += this.pieceBytes) {
      response.write(bytes.subarray(at, Math.min(bytes.length, at + this.pieceBytes)));
    }
  }

  private end(watcher: Watcher): void {
    watcher.response.end();
    this.forget(watcher);
  }

  private forget(watcher: Watcher): void {
    clearTimeout(watcher.timer);
    this.watchers.delete(watcher);
  }
}
