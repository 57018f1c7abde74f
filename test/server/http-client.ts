/** Speaking HTTP to a listener under test, over one kept connection or as raw bytes. */
import { Agent, type IncomingHttpHeaders, request } from "node:http";
import { connect, type Socket } from "node:net";
import type { Decider } from "../../src/ports/decider.ts";
import { createHttpApi, type HttpApiOptions } from "../../src/server/http-api.ts";
import { type HttpListener, listenHttp } from "../../src/server/listener.ts";

/** Members of the bodies that the API answers with; a test says what it expects of them. */
export interface AnswerBody {
  readonly allowed?: unknown;
  readonly detail?: unknown;
  readonly limits?: unknown;
  readonly openapi?: unknown;
  readonly reason?: unknown;
  readonly remaining?: unknown;
  readonly results?: unknown;
  readonly retry_after_ms?: unknown;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The body as JSON; undefined when there is none. */
  readonly json: AnswerBody;
  /** Local port of the connection, to see whether it was kept. */
  readonly localPort: number | undefined;
}

export class HttpClient {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #target: { port: number } | { socketPath: string };

  constructor(target: { port: number } | { socketPath: string }) {
    this.#target = target;
  }

  send(
    method: string,
    path: string,
    body?: string | Buffer,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const req = request(
        { ...this.#target, host: "127.0.0.1", method, path, headers, agent: this.#agent },
        (res) => {
          const localPort = res.socket.localPort;
          const chunks: Buffer[] = [];
          res.on("data", (chunk: Buffer) => chunks.push(chunk));
          res.once("error", reject);
          res.once("end", () => {
            const text = Buffer.concat(chunks).toString("utf8");
            const json = text.startsWith("{") ? JSON.parse(text) : undefined;
            resolve({ status: res.statusCode ?? 0, headers: res.headers, text, json, localPort });
          });
        },
      );
      req.once("error", reject);
      req.end(body);
    });
  }

  post(path: string, body: unknown): Promise<Answer> {
    return this.send("POST", path, JSON.stringify(body));
  }

  check(body: unknown, query = ""): Promise<Answer> {
    return this.post(`/v1/check${query}`, body);
  }

  get(path: string): Promise<Answer> {
    return this.send("GET", path);
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** What the tests keep running: a listener, a client of it, and faults that were reported. */
export interface Served {
  readonly client: HttpClient;
  readonly port: number;
  readonly listener: HttpListener;
  readonly faults: unknown[];
  stop(): Promise<void>;
}

export async function serve(
  decider: Decider,
  options: Partial<HttpApiOptions> = {},
): Promise<Served> {
  const faults: unknown[] = [];
  const handler = createHttpApi(decider, {
    clock: { monotonicUs: () => performance.now() * 1_000 },
    wallMs: () => Date.now(),
    onUnexpectedError: (error) => faults.push(error),
    ...options,
  });
  const listener = await listenHttp(handler, { kind: "tcp", host: "127.0.0.1", port: 0 });
  const port = listener.port ?? 0;
  const client = new HttpClient({ port });
  const stop = async (): Promise<void> => {
    client.close();
    await listener.stop(1_000);
  };
  return { client, port, listener, faults, stop };
}

/** A raw connection, opened. */
export function openSocket(target: { port: number } | { path: string }): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", ...target });
    socket.once("connect", () => resolve(socket));
    socket.once("error", reject);
  });
}

/** All bytes until the other side ends the connection. */
export function readToEnd(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    socket.setEncoding("latin1");
    socket.on("data", (chunk) => {
      text += chunk;
    });
    socket.once("error", reject);
    socket.once("close", () => resolve(text));
  });
}
