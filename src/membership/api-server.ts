/**
 * Requests to the Kubernetes API server, as a pod makes them: HTTPS with the cluster's authority
 * and the token of the service account.
 *
 * Both files are read again for every request, because the kubelet replaces the token about once an
 * hour. A connection serves one request: they are minutes apart, and none can hang on to an
 * authority that was replaced.
 */
import { readFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { join } from "node:path";
import { field } from "./endpoint-slices.ts";

export interface ApiServerOptions {
  /** From `KUBERNETES_SERVICE_HOST` and `KUBERNETES_SERVICE_PORT`; undefined outside a cluster. */
  readonly server: { readonly host: string; readonly port: number } | undefined;
  /** Folder with `ca.crt`, `token` and `namespace`. */
  readonly serviceAccount: string;
}

export interface ApiCall {
  readonly path: string;
  /** The head of the answer must come within this time. */
  readonly answerWithinMs: number;
  /** Ends the call and the answer's body. */
  readonly signal: AbortSignal;
}

/** What the API server said other than 200. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  /** What `Retry-After` asks for. */
  readonly retryAfterMs: number;

  constructor(status: number, detail: string, retryAfterMs = 0) {
    super(`the API server answered ${status}: ${detail}`);
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }

  /** What the caller has seen is too old to go on from: list again. */
  get isExpired(): boolean {
    return this.status === 410;
  }
}

const UNAUTHORIZED = 401;
const FORBIDDEN = 403;
const KEEP_ALIVE_MS = 15_000;
/** Of an answer that is an error. */
const DETAIL_LENGTH_MAX = 4_096;

export class ApiServer {
  private readonly options: ApiServerOptions;

  constructor(options: ApiServerOptions) {
    this.options = options;
  }

  /** The namespace of this pod. @throws {Error} When the service account's files are not there. */
  async namespace(): Promise<string> {
    return (await this.read("namespace")).trim();
  }

  /**
   * The answer, once its head has come with status 200.
   *
   * @throws {ApiError} For every other status; after 401 the token is read again and the call made
   *   once more first, since the token may have been replaced between reading and sending.
   * @throws {Error} When there is no answer at all.
   */
  async get(call: ApiCall): Promise<IncomingMessage> {
    const first = await this.send(call);
    if (first.statusCode === 200) return first;
    const refusal = await refusalOf(first);
    if (refusal.status !== UNAUTHORIZED) throw refusal;
    const second = await this.send(call);
    if (second.statusCode === 200) return second;
    throw await refusalOf(second);
  }

  private async send({ path, answerWithinMs, signal }: ApiCall): Promise<IncomingMessage> {
    const { server } = this.options;
    if (server === undefined) {
      throw new Error("KUBERNETES_SERVICE_HOST is not set: this is no pod of a cluster");
    }
    const [ca, token] = await Promise.all([this.read("ca.crt"), this.read("token")]);
    return new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${token.trim()}`, accept: "application/json" };
      const outgoing = request({ ...server, path, ca, headers, agent: false, signal });
      const timer = setTimeout(() => {
        outgoing.destroy(new Error(`the API server did not answer within ${answerWithinMs} ms`));
      }, answerWithinMs);
      outgoing.on("socket", (socket) => socket.setKeepAlive(true, KEEP_ALIVE_MS));
      outgoing.on("response", (incoming) => {
        clearTimeout(timer);
        resolve(incoming);
      });
      // Stays for the life of the connection: an error without a listener would end the process.
      outgoing.on("error", (error) => {
        clearTimeout(timer);
        reject(error);
      });
      outgoing.end();
    });
  }

  private async read(name: string): Promise<string> {
    const path = join(this.options.serviceAccount, name);
    try {
      return await readFile(path, "utf8");
    } catch (error) {
      const advice = "is automountServiceAccountToken off?";
      throw new Error(`cannot read ${path} of the service account; ${advice}`, { cause: error });
    }
  }
}

async function refusalOf(incoming: IncomingMessage): Promise<ApiError> {
  const status = incoming.statusCode ?? 0;
  const retryAfter = Number(incoming.headers["retry-after"] ?? 0);
  let text = "";
  try {
    for await (const piece of incoming.setEncoding("utf8")) {
      text += piece as string;
      if (text.length > DETAIL_LENGTH_MAX) break;
    }
  } catch {
    // The status says enough.
  }
  incoming.destroy();
  const advice =
    status === FORBIDDEN
      ? "; its role needs list and watch on endpointslices.discovery.k8s.io"
      : "";
  return new ApiError(status, detailOf(text) + advice, retryAfter > 0 ? retryAfter * 1_000 : 0);
}

/** The message of a Status, or the beginning of whatever it is. */
function detailOf(text: string): string {
  try {
    const message = field(JSON.parse(text), "message");
    if (typeof message === "string") return message.slice(0, 500);
  } catch {
    // No JSON.
  }
  return text.slice(0, 200);
}
