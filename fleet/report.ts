/** The verdict for people and for machines. */
import { type Claim, claimsOf } from "./claims.ts";
import { boundOf } from "./decision-times.ts";
import { rateOf } from "./excess.ts";
import type { RunOptions } from "./options.ts";
import type { RunResult } from "./run.ts";
import { type Latency, type Phase, SETTLING_US } from "./verdict.ts";

/** The verdict in a few lines. */
export function reportText(options: RunOptions, result: RunResult): string {
  const { verdict, podsMost } = result;
  const { excess, certainExcess, latencyMs, latenessMs } = verdict;
  const { mode } = result.standing;
  const lines = [
    "",
    `verdict over ${verdict.seconds.toFixed(1)} s: ${mode} limit ${options.rate}, ` +
      `burst ${options.burst}, interval ${options.interval}, at most ${podsMost} pods`,
    `  excess       ${tokens(excess.tokens)} tokens (${percent(excess.ofBurst)} of the burst)` +
      `${excess.tokens > 0 ? ` at ${(excess.atUs / 1e6).toFixed(1)} s` : ""}; ` +
      `certain: ${tokens(certainExcess.tokens)}`,
    `  utilisation  ${verdict.utilisation.toFixed(4)}  admitted ${verdict.admitted} of ` +
      `${verdict.offered} offered; one ideal bucket: ${verdict.ideal}`,
    `  redis        ${callsPerToken(result).toFixed(4)} calls per admitted token ` +
      `(${result.scriptCalls} calls)`,
    `  latency      ${latency(latencyMs)}   sent late by ${latency(latenessMs)}`,
    `  in the pods  p99 at most ${bound(result, 0.99)}, slowest at most ${bound(result, 1)} ms`,
    "",
    "  phase                     from      to   offered  admitted   settled   (per second)",
    ...verdict.phases.map(phaseLine),
    "",
    ...claimsOf(options, result).map(claimLine),
    "",
  ];
  return lines.join("\n");
}

/** Everything the text says and the seconds behind it. */
export function reportJson(options: RunOptions, result: RunResult): string {
  const { limit, json: _json, steps, hot, ...asked } = options;
  const { verdict, scriptCalls, admittedByPods, decisionTimes, sights, podsMost } = result;
  const { standing, count } = result;
  const { timeline, ...figures } = verdict;
  return JSON.stringify({
    options: {
      ...asked,
      hot: Object.fromEntries(hot),
      steps: steps.map(({ atUs, text }) => ({ at_us: atUs, act: text })),
      rate_per_second: rateOf(limit),
    },
    verdict: {
      ...figures,
      scriptCalls,
      scriptCallsPerToken: callsPerToken(result),
      podsMost,
      admittedByPods: Object.fromEntries(admittedByPods),
      decisionTimesMs: Object.fromEntries(decisionTimes),
      settlingSeconds: SETTLING_US / 1e6,
      standing,
      count,
      claims: claimsOf(options, result),
    },
    seconds: timeline.map(({ offered, admitted, byPod }, second) => ({
      second,
      offered,
      admitted,
      admittedByPod: Object.fromEntries(Object.entries(byPod)),
    })),
    sights,
  });
}

/** Of both limits: the servers do not tell for which one they were called. */
function callsPerToken({ scriptCalls, verdict, count }: RunResult): number {
  const admitted = verdict.admitted + (count?.admitted ?? 0);
  return admitted === 0 ? 0 : scriptCalls / admitted;
}

function claimLine({ name, holds, says }: Claim): string {
  return `  ${holds ? "holds" : "FAILS"}  ${name.padEnd(9)} ${says}`;
}

function phaseLine(phase: Phase): string {
  const number = (value: number): string =>
    (Number.isFinite(value) ? value.toFixed(1) : "-").padStart(10);
  const cause = phase.cause.length > 22 ? `${phase.cause.slice(0, 21)}…` : phase.cause;
  return (
    `  ${cause.padEnd(22)}${phase.fromSeconds.toFixed(1).padStart(8)}` +
    `${phase.toSeconds.toFixed(1).padStart(8)}${number(phase.offeredPerSecond)}` +
    `${number(phase.admittedPerSecond)}${number(phase.settledPerSecond)}`
  );
}

function latency({ p50, p99, max }: Latency): string {
  return `p50 ${p50.toFixed(2)} p99 ${p99.toFixed(2)} max ${max.toFixed(2)} ms`;
}

function bound({ decisionTimes }: RunResult, part: number): string {
  return String(boundOf(decisionTimes, part));
}

function tokens(value: number): string {
  return value.toFixed(1);
}

function percent(part: number): string {
  return `${(part * 100).toFixed(1)} %`;
}
