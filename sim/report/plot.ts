/**
 * A chart as a figure: an SVG that is stretched to the page, with its texts beside it in HTML, so
 * that letters keep their size and shape at every width. Behind it stands the table of its numbers.
 */
import type { Axis } from "./axis.ts";
import { escapeHtml } from "./escape.ts";
import { shortNumber } from "./numbers.ts";

/** The SVG's own units, both ways. */
const SIZE = 1000;

export interface PlotSeries {
  readonly name: string;
  /** A class of the style sheet: `admitted`, `ideal`, … */
  readonly look: string;
  /** Line in steps of equal length over the x axis; undefined values leave a gap. */
  readonly values: readonly number[];
  /** What the legend says beside the name. */
  readonly note?: string;
}

/** A stretch of the x axis, numbered in the order of the list below the chart. */
export interface PlotSpan {
  readonly from: number;
  readonly to: number;
  readonly label: string;
}

export interface PlotTable {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

export interface Plot {
  readonly title: string;
  /** One sentence that says what can be seen. */
  readonly caption: string;
  readonly x: Axis;
  readonly y: Axis;
  readonly xUnit: string;
  readonly series: readonly PlotSeries[];
  /** Horizontal lines with a name. */
  readonly levels: readonly { readonly value: number; readonly name: string }[];
  readonly spans: readonly PlotSpan[];
  /** Lines are steps: the value holds until the next. */
  readonly stepped: boolean;
  readonly table: PlotTable;
  /** Shown lower than an ordinary chart. */
  readonly small?: boolean;
}

export function plotFigure(plot: Plot): string {
  const { title, caption, series, levels, spans, small } = plot;
  const lines = series.map((each) => {
    return `<path class="line ${each.look}" d="${linePath(plot, each.values)}"/>`;
  });
  const drawn = [
    ...plot.y.ticks.map((tick) => horizontal(plot, tick, "grid")),
    ...spans.map((span) => bandRect(plot, span)),
    ...levels.map(({ value }) => horizontal(plot, value, "level")),
    ...lines,
  ];
  const legend = [
    ...series.map(({ name, look, note }) => legendItem(look, name, note)),
    ...levels.map(({ name }) => legendItem("level", name)),
  ];
  return figure({
    title,
    caption,
    legend,
    table: plot.table,
    body:
      spanBadges(plot) +
      frame(plot.x, plot.y, plot.xUnit, svg(title, caption, drawn), small ? "plot small" : "plot"),
    after: spanList(spans),
  });
}

export interface Figure {
  readonly title: string;
  readonly caption: string;
  readonly legend: readonly string[];
  readonly body: string;
  readonly after?: string;
  /** Left out when `after` shows the numbers already. */
  readonly table?: PlotTable;
}

/** Title, legend, drawing, and the numbers on demand. */
export function figure({ title, caption, legend, body, after, table }: Figure): string {
  const keys = legend.length > 0 ? `<ul class="legend">${legend.join("")}</ul>` : "";
  const numbers =
    table === undefined
      ? ""
      : `<details class="numbers"><summary>Numbers</summary>${plainTable(table)}</details>`;
  return (
    `<figure><h4>${escapeHtml(title)}</h4>${keys}${body}` +
    `<figcaption>${escapeHtml(caption)}</figcaption>${after ?? ""}${numbers}</figure>`
  );
}

export function legendItem(look: string, name: string, note?: string): string {
  const more = note === undefined ? "" : ` <small>${escapeHtml(note)}</small>`;
  return `<li><i class="${look}"></i>${escapeHtml(name)}${more}</li>`;
}

/** The drawing with the texts of its axes around it. */
export function frame(x: Axis, y: Axis, xUnit: string, drawing: string, look: string): string {
  const across = x.ticks.map((tick, i) => {
    const unit = i === x.ticks.length - 1 ? ` ${xUnit}` : "";
    return `<span style="left:${place(x.place(tick))}%">${shortNumber(tick)}${unit}</span>`;
  });
  const up = y.ticks.map(
    (tick) => `<span style="bottom:${place(y.place(tick))}%">${shortNumber(tick)}</span>`,
  );
  return (
    `<div class="${look}"><div class="y" aria-hidden="true">${up.join("")}</div>${drawing}` +
    `<div class="x" aria-hidden="true">${across.join("")}</div></div>`
  );
}

export function svg(title: string, caption: string, drawn: readonly string[]): string {
  return (
    `<svg viewBox="0 0 ${SIZE} ${SIZE}" preserveAspectRatio="none" role="img">` +
    `<title>${escapeHtml(`${title}. ${caption}`)}</title>${drawn.join("")}</svg>`
  );
}

/** A part of the axis as a percentage. */
function place(part: number): string {
  return (100 * part).toFixed(2);
}

export function across(axis: Axis, value: number): number {
  return Math.round(SIZE * axis.place(value) * 10) / 10;
}

export function above(axis: Axis, value: number): number {
  return Math.round(SIZE * (1 - axis.place(value)) * 10) / 10;
}

function horizontal({ y }: Plot, value: number, look: string): string {
  return `<path class="${look}" d="M0 ${above(y, value)}H${SIZE}"/>`;
}

function linePath({ x, y, stepped }: Plot, values: readonly number[]): string {
  const step = x.most / values.length;
  let path = "";
  for (const [i, value] of values.entries()) {
    const up = above(y, value);
    if (stepped) {
      path += `${i === 0 ? `M${across(x, 0)} ${up}` : `V${up}`}H${across(x, (i + 1) * step)}`;
    } else {
      path += `${i === 0 ? "M" : "L"}${across(x, (i + 0.5) * step)} ${up}`;
    }
  }
  return path;
}

/** Shorter spans are drawn as a hair's breadth. */
const BAND_MIN = 3;

function bandRect({ x }: Plot, { from, to }: PlotSpan): string {
  const left = across(x, from);
  const width = Math.max(BAND_MIN, across(x, to) - left);
  return `<rect class="band" x="${left}" y="0" width="${width}" height="${SIZE}"/>`;
}

/** Badges closer than this part of the width would overlap and become one. */
const BADGES_APART = 0.075;

/** Numbers over the chart where something happens; the list below says what. */
function spanBadges({ x, spans }: Plot): string {
  if (spans.length === 0) return "";
  const badges: { at: number; first: number; last: number }[] = [];
  for (const [i, span] of spans.entries()) {
    const at = x.place(span.from);
    const previous = badges.at(-1);
    if (previous !== undefined && at - previous.at < BADGES_APART) previous.last = i + 1;
    else badges.push({ at, first: i + 1, last: i + 1 });
  }
  const texts = badges.map(({ at, first, last }) => {
    const text = first === last ? `${first}` : `${first}–${last}`;
    return `<span style="left:${place(Math.min(0.97, at))}%">${text}</span>`;
  });
  return `<div class="badges" aria-hidden="true">${texts.join("")}</div>`;
}

/** Further events are only counted. */
const SPANS_LISTED_MAX = 40;

function spanList(spans: readonly PlotSpan[]): string {
  if (spans.length === 0) return "";
  const items = spans
    .slice(0, SPANS_LISTED_MAX)
    .map(({ label }) => `<li>${escapeHtml(label)}</li>`);
  const more = spans.length - items.length;
  const rest = more > 0 ? `<li>and ${more} more</li>` : "";
  return `<ol class="events">${items.join("")}${rest}</ol>`;
}

export function plainTable({ head, rows }: PlotTable): string {
  const cells = (row: readonly string[], tag: string): string =>
    row.map((cell) => `<${tag}>${escapeHtml(cell)}</${tag}>`).join("");
  return (
    `<div class="scroll"><table><thead><tr>${cells(head, "th")}</tr></thead><tbody>` +
    `${rows.map((row) => `<tr>${cells(row, "td")}</tr>`).join("")}</tbody></table></div>`
  );
}
