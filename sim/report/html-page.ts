/** The report for people: one page that needs nothing else, no network and no script. */
import { rounded } from "./data-files.ts";
import { escapeHtml } from "./escape.ts";
import { percent, shortNumber } from "./numbers.ts";
import {
  boundPart,
  byScenario,
  excessOf,
  isPassed,
  type Report,
  type ReportedRun,
  type ScenarioRuns,
  type SchemeRuns,
  utilisation,
} from "./report-data.ts";
import { runCharts } from "./run-charts.ts";
import { schemeFigure } from "./scheme-chart.ts";
import { STYLE } from "./style.ts";

/** Up to so many scenarios are shown unfolded. */
const OPEN_MAX = 3;

export function htmlPage(report: Report): string {
  const scenarios = byScenario(report.runs);
  const isOpen = scenarios.length <= OPEN_MAX;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(report.title)}</title>
<link rel="icon" href="data:,">
<style>${STYLE}</style>
</head>
<body>
<header>
<h1>${escapeHtml(report.title)}</h1>
${summaryOf(report, scenarios)}
<p class="command"><code>${escapeHtml(report.command)}</code></p>
</header>
<main>
${overview(scenarios)}
${scenarios.map((scenario) => scenarioSection(scenario, isOpen)).join("\n")}
</main>
<footer><p>${FOOTNOTE}</p></footer>
</body>
</html>
`;
}

const FOOTNOTE =
  "<b>Excess</b> is the largest debt of a bucket with the limit's rate r and burst b that " +
  "replays every admission: the most by which b + r T was exceeded in any span T. <b>Use</b> is " +
  "what was admitted as a part of what one ideal bucket admits from the same requests. " +
  "<b>Calls</b> are trips to the store per admitted token. Figures are the worst over all seeds.";

function summaryOf({ runs }: Report, scenarios: readonly ScenarioRuns[]): string {
  const judged = runs.filter((run) => run.judged);
  const failed = judged.filter((run) => !isPassed(run)).length;
  const broken = judged.reduce((sum, { result }) => sum + result.violations.length, 0);
  const count = (many: number, what: string): string =>
    `<b>${shortNumber(many)}</b> ${what}${many === 1 ? "" : "s"}`;
  return (
    `<p class="summary">${count(scenarios.length, "scenario")} · ` +
    `${count(runs.length, "run")} · ` +
    `<span class="${failed === 0 ? "good" : "bad"}">${count(failed, "failed run")}</span> · ` +
    `<span class="${broken === 0 ? "good" : "bad"}">${count(broken, "broken invariant")}</span></p>`
  );
}

function overview(scenarios: readonly ScenarioRuns[]): string {
  const rows = scenarios.flatMap((scenario) =>
    scenario.bySchemes.map((scheme) => overviewRow(scenario.scenario, scheme)),
  );
  return (
    '<section><h2>Overview</h2><table class="overview"><thead><tr><th>Scenario</th>' +
    "<th>Scheme</th><th>Seeds</th><th>Excess</th><th>Of bound</th>" +
    `<th>Use</th><th>Calls</th><th>Verdict</th></tr></thead>` +
    `<tbody>${rows.join("")}</tbody></table></section>`
  );
}

function overviewRow(scenario: string, { scheme, runs }: SchemeRuns): string {
  const most = (of: (run: ReportedRun) => number): number => Math.max(...runs.map(of));
  const least = Math.min(...runs.map(({ result }) => utilisation(result)));
  const cell = (label: string, value: number, text: string): string =>
    `<td data-label="${label}" data-value="${rounded(value)}">${text}</td>`;
  const excess = most(({ result }) => excessOf(result));
  const part = most(({ result }) => boundPart(result));
  const calls = most(({ result }) => result.cost.callsPerAdmit);
  return (
    `<tr data-scenario="${escapeHtml(scenario)}" data-scheme="${escapeHtml(scheme)}">` +
    `<th scope="row"><a href="#${anchor(scenario)}">${escapeHtml(scenario)}</a></th>` +
    `<td data-label="Scheme">${escapeHtml(scheme)}</td>` +
    cell("Seeds", runs.length, `${runs.length}`) +
    cell("Excess", excess, shortNumber(excess)) +
    cell("Of bound", part, shortNumber(part)) +
    cell("Use", least, least.toFixed(3)) +
    cell("Calls", calls, shortNumber(calls)) +
    `<td data-label="Verdict">${verdictText(runs)}</td></tr>`
  );
}

function verdictText(runs: readonly ReportedRun[]): string {
  if (runs.every((run) => !run.judged)) return '<span class="muted">not judged</span>';
  const failed = runs.filter((run) => !isPassed(run)).length;
  if (failed === 0) return '<span class="good">holds</span>';
  return `<span class="bad">${failed} of ${runs.length} fail</span>`;
}

function scenarioSection(scenario: ScenarioRuns, isOpen: boolean): string {
  const [first] = scenario.bySchemes;
  if (first === undefined) return "";
  const { worst } = first;
  const { result } = worst;
  const facts = [
    `${result.podsAtStart} pods at the start`,
    worst.workload,
    `${shortNumber(result.durationUs / 1e6)} s`,
    `charts: ${first.scheme}, seed ${result.seed}, the worst of ${first.runs.length}`,
  ];
  return (
    `<section class="scenario" id="${anchor(scenario.scenario)}">` +
    `<details${isOpen ? " open" : ""}><summary><h2>${escapeHtml(scenario.scenario)}</h2> ` +
    verdictText(first.runs) +
    `<span class="question">${escapeHtml(scenario.question)}</span></summary>` +
    `<p class="facts">${facts.map(escapeHtml).join(" · ")}</p>` +
    verdictList(worst) +
    (scenario.bySchemes.length > 1 ? schemeFigure(scenario.bySchemes) : "") +
    runCharts(result) +
    `<p class="command">Repeat: <code>${escapeHtml(worst.repeat)}</code></p></details></section>`
  );
}

function verdictList({ judged, verdicts, result }: ReportedRun): string {
  if (!judged) return "";
  const items = verdicts.map(
    ({ promise, passed, measured, allowed }) =>
      `<li class="${passed ? "good" : "bad"}"><span>${passed ? "holds" : "fails"}</span> ` +
      `${escapeHtml(promise)} ` +
      `<small>${shortNumber(measured)} of ${shortNumber(allowed)}</small></li>`,
  );
  const broken = result.violations.map(
    ({ invariant, atUs, text }) =>
      `<li class="bad"><span>broken</span> ${escapeHtml(`${invariant}: ${text}`)} ` +
      `<small>at ${shortNumber(atUs / 1e6)} s</small></li>`,
  );
  const { heldPart, maxUs } = result.latency;
  const waits = heldPart === 0 ? "none wait" : `the longest ${shortNumber(maxUs / 1e3)} ms`;
  return (
    `<ul class="verdicts">${[...items, ...broken].join("")}</ul>` +
    `<p class="facts">${percent(heldPart)} of the requests wait for the store; ${waits}.</p>`
  );
}

function anchor(scenario: string): string {
  return `scenario-${scenario.replace(/[^a-z0-9-]/gi, "-")}`;
}
