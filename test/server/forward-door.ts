/** `/v1/forward` under test: policies as a file writes them, in front of one exact engine. */
import { expect, onTestFinished } from "vitest";
import { loadConfig } from "../../src/config/load.ts";
import { formatProblem } from "../../src/config/problem.ts";
import type { Limit } from "../../src/core/limit.ts";
import { PolicyTable } from "../../src/policy/policy-table.ts";
import type { Decider } from "../../src/ports/decider.ts";
import { SoleEngine } from "../support/sole-engine.ts";
import { type Answer, serve } from "./http-client.ts";

export interface Door {
  /** Sends a request and gives the answer. */
  ask(path: string, headers?: Record<string, string>, method?: string): Promise<Answer>;
  /** Sends a request `times` times and gives the statuses. */
  statuses(times: number, path: string, headers?: Record<string, string>): Promise<number[]>;
  /** Durations of the decisions so far, us. */
  readonly durations: readonly number[];
  readonly sole: SoleEngine;
  readonly table: PolicyTable;
  readonly port: number;
  /** The first limit. */
  readonly limit: Limit;
}

/** @param yaml - Lines of a configuration file after `version: 1`. */
export async function openDoor(...yaml: readonly string[]): Promise<Door> {
  const { config, problems } = loadConfig({
    file: { path: "a.yaml", text: ["version: 1", ...yaml].join("\n") },
    env: {},
    flags: {},
    hostname: "host-1",
  });
  if (config === undefined) throw new Error(problems.map(formatProblem).join("\n"));
  const sole = new SoleEngine(config.limits);
  const table = new PolicyTable(config.policies);
  const durations: number[] = [];
  const decider: Decider = {
    limit: (name) => config.limits.find((limit) => limit.name === name),
    limits: () => config.limits,
    standing: (limit) => sole.engine.standing(limit),
    decide: (checks) => sole.decide(checks),
    report: (check) => sole.engine.report(sole.now, check),
  };
  const served = await serve(decider, {
    forward: { policies: table, observeUs: (us) => durations.push(us) },
  });
  onTestFinished(async () => {
    await served.stop();
    expect(served.faults).toEqual([]);
  });
  const ask: Door["ask"] = (path, headers = {}, method = "GET") =>
    served.client.send(method, path, undefined, headers);
  const statuses: Door["statuses"] = async (times, path, headers) => {
    const all: number[] = [];
    for (let i = 0; i < times; i += 1) all.push((await ask(path, headers)).status);
    return all;
  };
  const limit = config.limits[0] as Limit;
  return { ask, statuses, durations, sole, table, port: served.port, limit };
}

/** The remaining tokens that an answer tells. */
export function remaining({ headers: { ratelimit } }: Answer): number {
  return Number(/;r=(\d+)/.exec(String(ratelimit))?.[1]);
}
