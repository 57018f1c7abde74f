/** The charts of one run: admitted against the limit, pods, debt, shares, spans. */
import { type LimitResult, type RunResult, SERIES_STEP_US } from "../run-result.ts";
import { exactAxis, linearAxis } from "./axis.ts";
import { shortNumber } from "./numbers.ts";
import { type Plot, type PlotTable, plotFigure } from "./plot.ts";
import { coarseness, maxima, means, rates, spansOf } from "./series.ts";
import { shareFigure } from "./share-chart.ts";
import { spanFigure } from "./span-chart.ts";

/** Charts of more limits than this would only be scrolled past. */
const LIMITS_MAX = 6;

export function runCharts(result: RunResult): string {
  const perLimit = result.limits.slice(0, LIMITS_MAX).flatMap((limit) => {
    const name = result.limits.length > 1 ? ` of ${limit.name}` : "";
    return [
      plotFigure(admittedPlot(result, limit, name)),
      plotFigure(debtPlot(result, limit, name)),
      spanFigure(limit, result.durationUs, name),
    ];
  });
  return `<div class="charts">${[
    ...perLimit,
    plotFigure(podsPlot(result)),
    shareFigure(result),
  ].join("")}</div>`;
}

const timeOf = (result: RunResult) => exactAxis(result.durationUs / 1e6, 5);

function admittedPlot(result: RunResult, limit: LimitResult, name: string): Plot {
  const by = coarseness(limit.admittedSeries);
  const admitted = rates(limit.admittedSeries, by);
  const ideal = rates(limit.idealSeries, by);
  const offered = rates(limit.offeredSeries, by);
  const peak = Math.max(...admitted, ...ideal);
  // A rested bucket's burst and an offer of ten times the limit would flatten all the rest.
  const steady = Math.max(...admitted.slice(Math.ceil(admitted.length / 20)));
  const shown = Math.min(Math.max(peak, 1), Math.max(2.5 * limit.rate * limit.keys, 1.15 * steady));
  const y = linearAxis(shown, 4);
  const isCut = Math.max(peak, ...offered) > y.most;
  const stepS = (by * SERIES_STEP_US) / 1e6;
  const cut = isCut
    ? ` Cut off at ${shortNumber(y.most)}/s; the peak is ${shortNumber(Math.max(...admitted))}/s.`
    : "";
  const levels = [{ value: limit.rate, name: `limit ${shortNumber(limit.rate)}/s` }];
  return {
    title: `Admitted against the limit${name}`,
    caption: `Tokens per second, in steps of ${stepS} s.${cut}`,
    x: timeOf(result),
    y,
    xUnit: "s",
    series: [
      { name: "offered", look: "offered", values: offered, note: upTo(offered) },
      { name: "one ideal bucket", look: "ideal", values: ideal },
      { name: "admitted", look: "admitted", values: admitted },
    ],
    levels: limit.keys === 1 ? levels : [],
    spans: spansOf(result),
    stepped: false,
    table: tableOf(stepS, [
      ["offered/s", offered],
      ["ideal/s", ideal],
      ["admitted/s", admitted],
    ]),
  };
}

function upTo(values: readonly number[]): string {
  return `up to ${shortNumber(Math.max(...values))}/s`;
}

function debtPlot(result: RunResult, limit: LimitResult, name: string): Plot {
  const by = coarseness(limit.debtSeries);
  const debt = maxima(limit.debtSeries, by);
  const most = Math.max(limit.excess, ...debt);
  const isNear = limit.bound <= Math.max(1, 20 * most);
  const atS = shortNumber(limit.excessAtUs / 1e6);
  const what =
    limit.excess === 0
      ? "Never beyond b + r T in any span T."
      : `At most ${shortNumber(limit.excess)} tokens beyond b + r T in any span T, at ${atS} s.`;
  return {
    title: `Excess over time${name}`,
    caption: `${what} The stated bound is ${shortNumber(limit.bound)} tokens.`,
    x: timeOf(result),
    y: linearAxis(isNear ? Math.max(most, limit.bound) : Math.max(1, most), 3),
    xUnit: "s",
    series: [{ name: "excess, tokens", look: "debt", values: debt }],
    levels: isNear ? [{ value: limit.bound, name: `bound ${shortNumber(limit.bound)}` }] : [],
    spans: [],
    stepped: true,
    table: tableOf((by * SERIES_STEP_US) / 1e6, [["excess", debt]]),
    small: true,
  };
}

function podsPlot(result: RunResult): Plot {
  const { podsSeries } = result.fleet;
  const { callsSeries, callsPerSecond } = result.cost;
  const by = coarseness(podsSeries);
  const pods = means(podsSeries, by);
  const calls = rates(callsSeries, by);
  const stepS = (by * SERIES_STEP_US) / 1e6;
  return {
    title: "Pods that serve",
    caption: `${shortNumber(callsPerSecond)} store calls per second by all of them.`,
    x: timeOf(result),
    y: linearAxis(Math.max(...pods), 3),
    xUnit: "s",
    series: [{ name: "pods", look: "pods", values: pods }],
    levels: [],
    spans: [],
    stepped: true,
    table: tableOf(stepS, [
      ["pods", pods],
      ["store calls/s", calls],
    ]),
    small: true,
  };
}

/** Rows of a table; a longer series is thinned out, as it is in the JSON in full. */
const ROWS_MAX = 60;

function tableOf(
  stepS: number,
  columns: readonly (readonly [name: string, values: readonly number[]])[],
): PlotTable {
  const length = columns[0]?.[1].length ?? 0;
  const every = Math.max(1, Math.ceil(length / ROWS_MAX));
  const rows: string[][] = [];
  for (let i = 0; i < length; i += every) {
    const at = shortNumber(i * stepS);
    rows.push([at, ...columns.map(([, values]) => shortNumber(values[i] ?? Number.NaN))]);
  }
  return { head: ["from second", ...columns.map(([name]) => name)], rows };
}
