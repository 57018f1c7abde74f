/** The most that was admitted in any span of some lengths, against what the limit allows in it. */
import { type LimitResult, SPANS_SECONDS } from "../run-result.ts";
import { escapeHtml } from "./escape.ts";
import { percent, shortNumber } from "./numbers.ts";
import { figure } from "./plot.ts";

/** The bar's end: a bar that is longer is cut off, its number is not. */
const BAR_MOST = 1.5;

/** @param durationUs - Of the run; spans that are longer say nothing. */
export function spanFigure(limit: LimitResult, durationUs: number, name: string): string {
  const rows = SPANS_SECONDS.map((seconds, i) => {
    const over = limit.overAdmission[i] ?? 0;
    return { seconds, used: Math.max(0, 1 + over), allowed: limit.burst + limit.rate * seconds };
  }).filter(({ seconds }) => seconds * 1e6 <= durationUs);
  const title = `Largest admission by length of span${name}`;
  const caption = "As a part of b + r T, which the line marks; beyond it is over-admission.";
  const line = percentOf(1 / BAR_MOST);
  const bars = rows.map(({ seconds, used }) => {
    const width = percentOf(Math.min(1, used / BAR_MOST));
    const look = used > 1 ? "bar over" : "bar";
    return (
      `<span class="what">${seconds} s</span>` +
      `<svg class="track" height="18" role="img"><title>${seconds} s: ${percent(used)}</title>` +
      `<rect class="${look}" width="${width}" height="18" rx="2"/>` +
      `<line class="level" x1="${line}" x2="${line}" y1="0" y2="18"/></svg>` +
      `<span class="much">${escapeHtml(percent(used))}</span>`
    );
  });
  return figure({
    title,
    caption,
    legend: [],
    body: `<div class="bars">${bars.join("")}</div>`,
    table: {
      head: ["span", "b + r T", "most admitted", "of it"],
      rows: rows.map(({ seconds, used, allowed }) => [
        `${seconds} s`,
        shortNumber(allowed),
        shortNumber(used * allowed),
        percent(used),
      ]),
    },
  });
}

function percentOf(part: number): string {
  return `${(100 * part).toFixed(1)}%`;
}
