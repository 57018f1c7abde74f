/**
 * The ops listener: probes, metrics and status. It is reachable from outside the pod (the kubelet
 * and Prometheus come in on the pod's address), so it decides nothing and changes nothing.
 *
 * Readiness never depends on the store: a pod without it still answers by its fallback, and a store
 * outage that took every pod out of its Service would be the larger one.
 */
import type { ServerResponse } from "node:http";
import type { Figures } from "../core/tally.ts";
import { send, sendJson, sendOptions, sendProblem } from "./answer.ts";
import type { RequestHandler } from "./http-api.ts";
import { asciiJson, excerpt, methodNotAllowed, Problem } from "./problem.ts";
import { type Identity, statusOf } from "./status.ts";

/** What the daemon lets the ops listener see. */
export interface OpsView {
  /** Configuration loaded, listeners bound, first join tried. */
  started(): boolean;
  /** A stop has begun. */
  draining(): boolean;
  identity(): Identity;
  figures(): Figures;
  /** Renders the metrics. @param accept - The request's Accept header. */
  metrics(accept: string | undefined): Promise<{ contentType: string; body: string }>;
  /** An answer could not be made. */
  onUnexpectedError(error: unknown): void;
}

const ALLOW = "GET, HEAD, OPTIONS";
const TEXT = "text/plain; charset=utf-8";

const INDEX = `aliquot ops listener

/livez     the process turns
/startupz  configuration loaded, listeners bound, first join tried
/readyz    checks can be answered (?verbose lists the components)
/metrics   Prometheus or OpenMetrics, by Accept
/status    JSON
`;

export function createOpsHandler(view: OpsView): RequestHandler {
  const pages = createPages(view);
  return (req, res) => {
    const [path = "/", query = ""] = (req.url ?? "/").split("?", 2);
    const page = pages.get(path);
    if (page === undefined) {
      sendProblem(res, new Problem(404, `there is nothing at ${excerpt(path)}; see /`));
    } else if (req.method === "OPTIONS") {
      sendOptions(res, ALLOW);
    } else if (req.method !== "GET" && req.method !== "HEAD") {
      sendProblem(res, methodNotAllowed(req.method ?? "", excerpt(path), ALLOW));
    } else {
      try {
        page(res, query, req.headers.accept);
      } catch (error) {
        fail(view, res, error);
      }
    }
  };
}

type Page = (res: ServerResponse, query: string, accept: string | undefined) => void;

function createPages(view: OpsView): ReadonlyMap<string, Page> {
  return new Map<string, Page>([
    ["/", (res) => send(res, 200, TEXT, INDEX)],
    // That this is answered at all is the whole test.
    ["/livez", (res) => sendProbe(res, true, "")],
    ["/startupz", (res) => sendProbe(res, view.started(), "")],
    ["/readyz", (res, query) => sendReadiness(res, view, query)],
    ["/status", (res) => sendStatus(res, view)],
    ["/metrics", (res, _query, accept) => sendMetrics(res, view, accept)],
  ]);
}

function sendProbe(res: ServerResponse, passes: boolean, components: string): void {
  const verdict = passes ? "ok\n" : "not ok\n";
  send(res, passes ? 200 : 503, TEXT, components + verdict, ["Cache-Control", "no-store"]);
}

function isReady(view: OpsView): boolean {
  return view.started() && !view.draining();
}

function sendReadiness(res: ServerResponse, view: OpsView, query: string): void {
  const verbose = query.split("&").some((field) => /^verbose(=|$)/.test(field));
  sendProbe(res, isReady(view), verbose ? components(view) : "");
}

function components(view: OpsView): string {
  const { store } = view.identity();
  const { storeUp, fallbackActive } = view.figures();
  const lines = [
    view.started() ? "[+] started" : "[-] started: not yet",
    view.draining() ? "[-] draining" : "[+] not draining",
  ];
  if (store === "embedded") lines.push("[+] store: embedded");
  else if (storeUp) lines.push(`[+] store: ${store} answers`);
  else lines.push(`[!] store: ${store} does not answer (readiness does not depend on it)`);
  lines.push(fallbackActive ? "[!] fallback: active" : "[+] fallback: not active");
  return `${lines.join("\n")}\n`;
}

function sendStatus(res: ServerResponse, view: OpsView): void {
  const state = { started: view.started(), draining: view.draining(), ready: isReady(view) };
  const status = { ...statusOf(view.identity(), view.figures()), ...state };
  sendJson(res, 200, asciiJson(status), ["Cache-Control", "no-store"]);
}

function sendMetrics(res: ServerResponse, view: OpsView, accept: string | undefined): void {
  view
    .metrics(accept)
    .then(({ contentType, body }) => send(res, 200, contentType, body))
    .catch((error: unknown) => fail(view, res, error));
}

function fail(view: OpsView, res: ServerResponse, error: unknown): void {
  view.onUnexpectedError(error);
  if (res.headersSent) res.destroy();
  else sendProblem(res, new Problem(500, "the sidecar met a fault of its own; see its log"));
}
