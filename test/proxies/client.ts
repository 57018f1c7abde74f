/** The two ends of a proxied request: a client, and the application behind the proxy. */
import { Agent, createServer, type OutgoingHttpHeaders, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";

export interface Seen {
  readonly status: number;
  /** Lines of a header, joined as HTTP does; undefined when there is none. */
  readonly header: (name: string) => string | undefined;
  readonly text: string;
}

export interface Sent {
  readonly method?: string;
  readonly body?: string;
  readonly headers?: OutgoingHttpHeaders;
}

export class Client {
  readonly #port: number;
  readonly #agent: Agent;

  /** @param connections - Most connections that are kept open. */
  constructor(port: number, connections = 4) {
    this.#port = port;
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections });
  }

  /** @param path - Goes out as it is; nothing is normalised. */
  send(path: string, { method = "GET", headers = {}, body }: Sent = {}): Promise<Seen> {
    return new Promise((resolve, reject) => {
      const to = { host: "127.0.0.1", port: this.#port, path, method, headers };
      const outgoing = request({ ...to, agent: this.#agent }, (incoming) => {
        let text = "";
        incoming.setEncoding("utf8");
        incoming.on("data", (part: string) => {
          text += part;
        });
        incoming.once("error", reject);
        incoming.once("end", () => {
          const header: Seen["header"] = (name) => incoming.headersDistinct[name]?.join(", ");
          resolve({ status: incoming.statusCode ?? 0, header, text });
        });
      });
      outgoing.setTimeout(10_000, () => outgoing.destroy(new Error("no answer within 10 s")));
      outgoing.once("error", reject);
      outgoing.end(body);
    });
  }

  /** Sends the same request again and again, one at a time, and gives the statuses. */
  async statuses(times: number, path: string, sent: Sent = {}): Promise<number[]> {
    const all: number[] = [];
    for (let i = 0; i < times; i += 1) all.push((await this.send(path, sent)).status);
    return all;
  }

  /** Sends `total` requests over all connections at once and counts the statuses. */
  async crowd(total: number, path: string, sent: (index: number) => Sent): Promise<Crowd> {
    const statuses: Crowd = new Map();
    let next = 0;
    const worker = async (): Promise<void> => {
      while (next < total) {
        next += 1;
        const { status } = await this.send(path, sent(next));
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
    };
    await Promise.all(Array.from({ length: this.#agent.maxSockets }, worker));
    return statuses;
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** How many answers had each status. */
export type Crowd = Map<number, number>;

/**
 * An application that answers with what it was asked: method, path with query, and body. The status
 * is 200, or the one that a path `/status/N` asks for.
 */
export class App {
  /** Requests that got here. */
  requests = 0;
  /** Those of them that were meant for the sidecar. */
  astray = 0;
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    server.on("request", (req, res) => {
      this.requests += 1;
      if (req.url?.startsWith("/v1/forward")) this.astray += 1;
      const status = Number(/^\/status\/(\d{3})/.exec(req.url ?? "")?.[1] ?? 200);
      let body = "";
      req.setEncoding("utf8").on("data", (part: string) => {
        body += part;
      });
      req.once("end", () => {
        res.writeHead(status, { "content-type": "text/plain" });
        res.end(`${req.method} ${req.url} ${body}`);
      });
    });
  }

  static async start(): Promise<App> {
    const server = createServer({ keepAliveTimeout: 120_000 });
    const app = new App(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return app;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
