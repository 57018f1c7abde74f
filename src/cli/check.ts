/** `aliquot check`: one check against a running sidecar, for people and for shell scripts. */
import { CONFIG_OPTION, settingOptions } from "./configuration.ts";
import { ask, decisionPlaces, type Reply } from "./sidecar.ts";
import { EXIT, type Io, UsageError, type Verb } from "./verb.ts";

const COST_MAX = 1_000_000_000;

/** The parts of a decision that are printed. */
interface Verdict {
  readonly allowed: boolean;
  readonly limit: string;
  readonly remaining: number;
  readonly reset_after_ms: number;
  readonly retry_after_ms?: number;
  readonly source: string;
  readonly degraded: boolean;
  readonly would_deny?: boolean;
  readonly reason?: string;
}

export const check: Verb = {
  name: "check",
  summary: "Ask a running sidecar for one decision; exit 0 when allowed, 3 when denied.",
  operands: "LIMIT KEY",
  operandCount: [2, 2],
  options: [
    { name: "cost", value: "N", help: "tokens to spend, 1 when left out; 0 only looks" },
    { name: "json", value: undefined, help: "print the decision as the sidecar gave it" },
    CONFIG_OPTION,
    ...settingOptions("listen-http-socket", "listen-http-tcp"),
  ],
  examples: [
    ["aliquot check api-per-user alice", "spend one token"],
    ["aliquot check api-per-user alice --cost 0", "how much is left"],
    ["aliquot check api-per-user alice || sleep 1", "in a script"],
  ],
  async run({ operands: [limit, key], flags }, io) {
    const body = JSON.stringify({ limit, key, cost: costOf(flags.get("cost")) });
    const places = await decisionPlaces(flags, io);
    const reply = await ask(places, { method: "POST", path: "/v1/check", body });
    return report(reply, flags.get("json") === "true", io);
  },
};

function costOf(text: string | undefined): number {
  if (text === undefined) return 1;
  const cost = /^[0-9]{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (!(cost <= COST_MAX)) {
    throw new UsageError(`--cost must be a whole number from 0 to ${COST_MAX}; got ${text}`);
  }
  return cost;
}

function report(reply: Reply, asJson: boolean, io: Io): number {
  const answer = parse(reply.body);
  if (!isVerdict(answer)) {
    io.stderr(`aliquot check: ${complaint(reply.status, answer)}\n`);
    return EXIT.failure;
  }
  io.stdout(`${asJson ? reply.body.trim() : sentence(answer)}\n`);
  return answer.allowed ? EXIT.ok : EXIT.denied;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isVerdict(answer: unknown): answer is Verdict {
  return typeof (answer as Partial<Verdict> | undefined | null)?.allowed === "boolean";
}

/** What the sidecar said about a request that it did not decide. */
function complaint(status: number, answer: unknown): string {
  const problem = (answer ?? {}) as { readonly title?: unknown; readonly detail?: unknown };
  const told = [problem.detail, problem.title].find((text) => typeof text === "string");
  return `the sidecar answered ${status}${told === undefined ? "" : `: ${told}`}`;
}

function sentence(verdict: Verdict): string {
  const { limit, remaining, source } = verdict;
  const how = `decided by ${source}${verdict.degraded ? ", store unreachable" : ""}`;
  if (verdict.allowed) {
    const trial = verdict.would_deny === true ? " (shadow: would be denied)" : "";
    const full = `full in ${verdict.reset_after_ms} ms`;
    return `allowed${trial}: ${limit}, ${remaining} remaining, ${full}, ${how}`;
  }
  const wait =
    verdict.retry_after_ms === undefined
      ? `never possible (${verdict.reason ?? "no reason given"})`
      : `retry after ${verdict.retry_after_ms} ms`;
  return `denied: ${limit}, ${remaining} remaining, ${wait}, ${how}`;
}
