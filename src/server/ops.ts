/**
 * The ops listener: probes, metrics and status. It is reachable from outside the pod (the kubelet
 * and Prometheus come in on the pod's address), so it decides nothing and changes nothing.
 *
 * Readiness never depends on the store: a pod without it still answers by its fallback, and a store
 * outage that took every pod out of its Service would be the larger one.
 */
import type { ServerResponse } from "node:http";
import type { Counts, Figures } from "../core/tally.ts";
import type { Decider } from "../ports/decider.ts";
import type { Observed, WorkerCounts } from "../ports/observed.ts";
import { send, sendJson, sendOptions, sendProblem } from "./answer.ts";
import { unknownLimit } from "./check-body.ts";
import type { RequestHandler } from "./http-api.ts";
import { asciiJson, excerpt, methodNotAllowed, Problem } from "./problem.ts";
import { parseQuery } from "./query.ts";
import { type Identity, statusOf } from "./status.ts";
import { historyQuery, historyStatus, outlinesStatus } from "./status-history.ts";
import { prefersHtml, STATUS_PAGE_HEADERS, statusPage } from "./status-page/page.ts";

export interface ObservedEngine extends Pick<Decider, "limit" | "limits" | "standing"> {
  /** Costs the same however many keys there are. */
  counts(): Counts;
  /** Looks at every key. */
  figures(): Figures;
}

/** What the daemon lets the ops listener see. */
export interface OpsView {
  /** Configuration loaded, listeners bound, first join tried. */
  started(): boolean;
  /** A stop has begun. */
  draining(): boolean;
  identity(): Identity;
  /** The processes that decide; left out where this one does. */
  readonly workers?: (() => WorkerCounts) | undefined;
  readonly engine: ObservedEngine;
  readonly observed: Observed;
  /** Keys may be shown as callers gave them. */
  showKeys(): boolean;
  /** What is shown in place of a key. */
  keyDigest(limit: string, key: string): string;
  /** Renders the metrics. @param accept - The request's Accept header. */
  metrics(accept: string | undefined): Promise<{ contentType: string; body: string }>;
  /** An answer could not be made. */
  onUnexpectedError(error: unknown): void;
}

const ALLOW = "GET, HEAD, OPTIONS";
const TEXT = "text/plain; charset=utf-8";
const NO_STORE = ["Cache-Control", "no-store"] as const;

const INDEX = `aliquot ops listener

/          this, and to browsers a status page
/livez     the process turns
/startupz  configuration loaded, listeners bound, first join tried
/readyz    checks can be answered (?verbose lists the components)
/metrics   Prometheus or OpenMetrics, by Accept
/status    JSON (?history adds the last five minutes)
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
  const figuresLately = lately(view);
  return new Map<string, Page>([
    ["/", (res, _query, accept) => sendIndex(res, accept)],
    // That this is answered at all is the whole test.
    ["/livez", (res) => sendProbe(res, true, "")],
    ["/startupz", (res) => sendProbe(res, view.started(), "")],
    ["/readyz", (res, query) => sendReadiness(res, view, query)],
    ["/status", (res, query) => sendStatus(res, view, figuresLately, query)],
    ["/metrics", (res, _query, accept) => sendMetrics(res, view, accept)],
  ]);
}

/** Scripts and scrapers get the list of paths, browsers the page. */
function sendIndex(res: ServerResponse, accept: string | undefined): void {
  const vary = ["Vary", "Accept"];
  if (!prefersHtml(accept)) send(res, 200, TEXT, INDEX, vary);
  else send(res, 200, "text/html; charset=utf-8", statusPage, [...vary, ...STATUS_PAGE_HEADERS]);
}

function sendProbe(res: ServerResponse, passes: boolean, components: string): void {
  const verdict = passes ? "ok\n" : "not ok\n";
  send(res, passes ? 200 : 503, TEXT, components + verdict, NO_STORE);
}

function isReady(view: OpsView): boolean {
  const workersUp = view.workers?.().up ?? 1;
  return view.started() && !view.draining() && workersUp > 0;
}

function sendReadiness(res: ServerResponse, view: OpsView, query: string): void {
  const verbose = query.split("&").some((field) => /^verbose(=|$)/.test(field));
  sendProbe(res, isReady(view), verbose ? components(view) : "");
}

function components(view: OpsView): string {
  const { store } = view.identity();
  const { storeUp, fallbackActive } = view.engine.counts();
  const lines = [
    view.started() ? "[+] started" : "[-] started: not yet",
    view.draining() ? "[-] draining" : "[+] not draining",
  ];
  if (view.workers !== undefined) {
    const { up, workers } = view.workers();
    lines.push(`[${up === 0 ? "-" : up < workers ? "!" : "+"}] workers: ${up} of ${workers} up`);
  }
  if (store === "embedded") lines.push("[+] store: embedded");
  else if (storeUp) lines.push(`[+] store: ${store} answers`);
  else lines.push(`[!] store: ${store} does not answer (readiness does not depend on it)`);
  lines.push(fallbackActive ? "[!] fallback: active" : "[+] fallback: not active");
  return `${lines.join("\n")}\n`;
}

function sendStatus(
  res: ServerResponse,
  view: OpsView,
  figuresLately: () => Figures,
  queryText: string,
): void {
  const { engine, observed } = view;
  const fields = parseQuery(queryText);
  const asked = fields instanceof Problem ? fields : historyQuery(fields);
  if (asked instanceof Problem) {
    sendProblem(res, asked);
    return;
  }
  if (asked?.limit !== undefined && engine.limit(asked.limit) === undefined) {
    sendProblem(res, unknownLimit(asked.limit, engine.limits()));
    return;
  }
  const limits = engine.limits().map((limit) => ({ limit, standing: engine.standing(limit) }));
  const status = statusOf({
    identity: view.identity(),
    workers: view.workers?.(),
    figures: asked === undefined ? view.engine.figures() : figuresLately(),
    limits,
    observed,
    showKeys: view.showKeys(),
    keyDigest: (limit, key) => view.keyDigest(limit, key),
  });
  const state = { started: view.started(), draining: view.draining(), ready: isReady(view) };
  const names = limits.map(({ limit }) => limit.name);
  const past = asked !== undefined && {
    history: historyStatus(observed.history, asked),
    outlines: outlinesStatus(observed.history, names),
  };
  sendJson(res, 200, asciiJson({ ...status, ...state, ...past }), NO_STORE);
}

/**
 * Figures for those who ask every second, however many they are: every key is looked at once in a
 * second at most. What costs little is as it is now.
 */
function lately({ engine, observed }: OpsView): () => Figures {
  let seen: { readonly second: number; readonly limits: Figures["limits"] } | undefined;
  return () => {
    const { last: second } = observed.history;
    const now = engine.counts();
    const isFresh =
      seen?.second === second &&
      now.limits.every(({ tally }, i) => seen?.limits[i]?.tally === tally);
    if (!isFresh || seen === undefined) seen = { second, limits: engine.figures().limits };
    return { ...now, limits: seen.limits };
  };
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
