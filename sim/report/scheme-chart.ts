/** Schemes side by side in one scenario: how exact each is, and what it costs. */
import type { Axis } from "./axis.ts";
import { linearAxis, magnitudeAxis } from "./axis.ts";
import { rounded } from "./data-files.ts";
import { escapeHtml } from "./escape.ts";
import { shortNumber } from "./numbers.ts";
import { above, across, figure, frame, legendItem, svg } from "./plot.ts";
import { excessOf, type ReportedRun, type SchemeRuns, utilisation } from "./report-data.ts";

interface Dot {
  readonly number: number;
  readonly scheme: string;
  readonly calls: number;
  readonly excess: number;
  readonly use: number;
  readonly look: "ours" | "theirs";
}

export function schemeFigure(schemes: readonly SchemeRuns[]): string {
  const dots = schemes.map(({ scheme, runs }, i): Dot => {
    const worst = (of: (run: ReportedRun) => number): number => Math.max(...runs.map(of));
    return {
      number: i + 1,
      scheme,
      calls: worst(({ result }) => result.cost.callsPerAdmit),
      excess: worst(({ result }) => excessOf(result)),
      use: Math.min(...runs.map(({ result }) => utilisation(result))),
      look: /^aliquot/.test(scheme) ? "ours" : "theirs",
    };
  });
  const x = linearAxis(Math.max(...dots.map(({ calls }) => calls)), 5);
  const y = magnitudeAxis(Math.max(...dots.map(({ excess }) => excess)), 10);
  const title = "Schemes side by side";
  const caption =
    "Excess in tokens (upwards, by powers of ten) against store calls per admitted token (to the " +
    "right); the worst over all seeds. Down and to the left is better.";
  const drawn = [
    ...y.ticks.map((tick) => `<path class="grid" d="M0 ${above(y, tick)}H1000"/>`),
    ...dots.map((dot) => dotPath(dot, x, y)),
  ];
  return figure({
    title,
    caption,
    legend: [legendItem("ours", "Aliquot and its ablations"), legendItem("theirs", "other rules")],
    body: frame(x, y, "calls", svg(title, caption, drawn) + dotLabels(dots, x, y), "plot"),
    after: schemeTable(dots),
  });
}

/** A line without length and with a round cap: a dot that no stretching makes an ellipse. */
function dotPath({ scheme, calls, excess, look }: Dot, x: Axis, y: Axis): string {
  const at = `M${across(x, calls)} ${above(y, excess)}`;
  return `<path class="dot ${look}" d="${at}h0.01"><title>${escapeHtml(scheme)}</title></path>`;
}

/** Dots closer than this share a label. */
const NEAR_X = 0.16;
const NEAR_Y = 0.1;

function dotLabels(dots: readonly Dot[], x: Axis, y: Axis): string {
  const labels: { left: number; bottom: number; numbers: number[] }[] = [];
  for (const { calls, excess, number } of dots) {
    const [left, bottom] = [x.place(calls), y.place(excess)];
    const near = labels.find(
      (label) => Math.abs(label.left - left) < NEAR_X && Math.abs(label.bottom - bottom) < NEAR_Y,
    );
    if (near === undefined) labels.push({ left, bottom, numbers: [number] });
    else near.numbers.push(number);
  }
  const texts = labels.map(({ left, bottom, numbers }) => {
    const side =
      left > 0.7 ? `right:${(100 * (1 - left)).toFixed(1)}%` : `left:${(100 * left).toFixed(1)}%`;
    return `<span style="${side};bottom:${(100 * bottom).toFixed(1)}%">${ranges(numbers)}</span>`;
  });
  return `<div class="dots" aria-hidden="true">${texts.join("")}</div>`;
}

/** 1, 2, 3, 7 as "1–3, 7". */
function ranges(numbers: readonly number[]): string {
  const parts: string[] = [];
  for (let i = 0; i < numbers.length; i += 1) {
    const from = numbers[i] as number;
    while (numbers[i + 1] === (numbers[i] as number) + 1) i += 1;
    const to = numbers[i] as number;
    parts.push(from === to ? `${from}` : `${from}–${to}`);
  }
  return parts.join(", ");
}

function schemeTable(dots: readonly Dot[]): string {
  const rows = dots.map(
    ({ number, scheme, excess, calls, use, look }) =>
      `<tr class="${look}"><td>${number}</td><th scope="row">${escapeHtml(scheme)}</th>` +
      `<td data-field="excess" data-value="${rounded(excess)}">${shortNumber(excess)}</td>` +
      `<td data-field="calls" data-value="${rounded(calls)}">${shortNumber(calls)}</td>` +
      `<td>${use.toFixed(3)}</td></tr>`,
  );
  return (
    '<div class="scroll"><table class="schemes"><thead><tr><th>#</th><th>scheme</th>' +
    `<th>excess</th><th>calls</th><th>use</th></tr></thead><tbody>${rows.join("")}</tbody>` +
    "</table></div>"
  );
}
