/** The load of the comparison of designs, in a process of its own for each design. */
import { type Asker, type AskerTimes, askClosed, askPaced, HttpAsker } from "./asker.ts";
import { type ClientProcess, serveOrders } from "./client-process.ts";
import { AT_ONCE, type Design, KEYS, type Places } from "./design.ts";
import { IoredisAsker } from "./ioredis-asker.ts";
import type { PaceOrder } from "./open-loop.ts";
import { commandOf, pipelineBusily } from "./resp-load.ts";

/** As fast as it goes, or at a pace. */
export type DesignOrder = { readonly seconds: number } | PaceOrder;

/** As fast as it went. */
export interface DesignCount {
  readonly checksPerSecond: number;
  readonly wrong: number;
}

export type DesignClient = ClientProcess<DesignOrder, DesignCount | AskerTimes>;

export const DESIGN_CLIENT_ARGUMENT = "--as-design-client";

/** Connections of the raw client; a pipeline keeps its connection busy. */
const PIPELINED_CONNECTIONS = 8;

/** Runs in the process of a `DesignClient`. @param argument - Design and places as JSON. */
export function runDesignClient(argument: string): void {
  const { design, places } = JSON.parse(argument) as {
    readonly design: Design;
    readonly places: Places;
  };
  if (design.name === "aliquot pipelines") {
    serveOrders(({ seconds }: DesignOrder) => pipelined(design.checks, places.respPath, seconds));
    return;
  }
  const asker = askerOf(design, places);
  serveOrders(async (order: DesignOrder): Promise<DesignCount | AskerTimes> => {
    if ("perSecond" in order) return askPaced(asker, order);
    const { perSecond, wrong } = await askClosed(asker, AT_ONCE, order.seconds);
    return { checksPerSecond: perSecond * design.checks, wrong };
  });
}

async function pipelined(depth: number, path: string, seconds: number): Promise<DesignCount> {
  const connections = PIPELINED_CONNECTIONS;
  const commands = batchKeys(depth).map((key) => commandOf(["ALIQUOT.CHECK", "bench", key]));
  const pipelines = [commands.join("")];
  const { perSecond } = await pipelineBusily({ path, pipelines, depth, connections, seconds });
  return { checksPerSecond: perSecond, wrong: 0 };
}

function askerOf({ name, checks }: Design, places: Places): Asker {
  if (name === "lua in process") return IoredisAsker.lua(places.redisUrl);
  if (name === "aliquot by ioredis") return IoredisAsker.aliquot(places.respPort);
  const isAdmitted = (status: number, body: string): boolean =>
    status === 200 && body.includes('"allowed":true') && !body.includes('"allowed":false');
  const requests = checks === 1 ? KEYS.map(getRequest) : [batchRequest(checks)];
  return new HttpAsker({ path: pathOf(name, places) }, requests, AT_ONCE, isAdmitted);
}

function pathOf(name: Design["name"], places: Places): string {
  if (name === "lua service") return places.luaPath;
  return name === "flexible service" ? places.flexiblePath : places.httpPath;
}

/** A check of one key over HTTP. */
export function getRequest(key: string): string {
  return `GET /v1/check?limit=bench&key=${key} HTTP/1.1\r\nHost: bench\r\n\r\n`;
}

function batchRequest(checks: number): string {
  const requests = batchKeys(checks).map((key) => ({ limit: "bench", key, cost: 1 }));
  const json = JSON.stringify({ requests });
  return (
    "POST /v1/check/batch HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n" +
    `Content-Length: ${json.length}\r\n\r\n${json}`
  );
}

function batchKeys(checks: number): string[] {
  return Array.from({ length: checks }, (_, index) => KEYS[index % KEYS.length] as string);
}
