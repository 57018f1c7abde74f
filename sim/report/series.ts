/** Series made coarse enough to be drawn, and events made few enough to be read. */
import { type RunEvent, type RunResult, SERIES_STEP_US, type Series } from "../run-result.ts";
import { seconds } from "./numbers.ts";
import type { PlotSpan } from "./plot.ts";

/** A line of more steps than this looks the same. */
const STEPS_MAX = 150;

/** How many steps of a series become one. */
export function coarseness(series: Series): number {
  return Math.max(1, Math.ceil(series.length / STEPS_MAX));
}

/** Sums per step as rates per second, `by` steps at a time. */
export function rates(series: Series, by: number): number[] {
  return pieces(series, by).map(
    (piece) =>
      piece.reduce((sum, value) => sum + value, 0) / ((piece.length * SERIES_STEP_US) / 1e6),
  );
}

/** The largest of every `by` steps: nothing that went wrong is averaged away. */
export function maxima(series: Series, by: number): number[] {
  return pieces(series, by).map((piece) => Math.max(...piece));
}

/** The mean of every `by` steps. */
export function means(series: Series, by: number): number[] {
  return pieces(series, by).map((piece) => piece.reduce((sum, v) => sum + v, 0) / piece.length);
}

function pieces(series: Series, by: number): (readonly number[])[] {
  const list: (readonly number[])[] = [];
  for (let i = 0; i < series.length; i += by) list.push(series.slice(i, i + by));
  return list;
}

/** Faults with their length, and pods that come and go, those of one instant together. */
export function spansOf({ events, durationUs }: RunResult): PlotSpan[] {
  const spans: { fromUs: number; toUs: number; text: string }[] = [];
  const pods: Map<string, { fromUs: number; kind: RunEvent["kind"]; names: string[] }> = new Map();
  for (const { atUs, kind, text } of events) {
    if (kind === "heal" || (kind === "mark" && hasFault(events, atUs))) continue;
    if (kind === "fault" || kind === "mark") {
      const heal = events.find(
        (other) => other.kind === "heal" && other.text === text && other.atUs >= atUs,
      );
      spans.push({ fromUs: atUs, toUs: heal?.atUs ?? atUs, text: wordsOf(kind, text) });
      continue;
    }
    const group = pods.get(`${kind} ${atUs}`);
    if (group === undefined) pods.set(`${kind} ${atUs}`, { fromUs: atUs, kind, names: [text] });
    else group.names.push(text);
  }
  // A fault at the same instant says so already.
  const told = new Set(events.filter(({ kind }) => kind === "fault").map(({ atUs }) => atUs));
  for (const { fromUs, kind, names } of pods.values()) {
    if (told.has(fromUs)) continue;
    const who = names.length === 1 ? names[0] : `${names.length} pods`;
    spans.push({ fromUs, toUs: fromUs, text: `${who}: ${kind}` });
  }
  return spans
    .sort((a, b) => a.fromUs - b.fromUs)
    .map(({ fromUs, toUs, text }) => ({
      from: fromUs / 1e6,
      to: Math.min(toUs, durationUs) / 1e6,
      label: `${seconds(fromUs)}: ${text}`,
    }));
}

function hasFault(events: readonly RunEvent[], atUs: number): boolean {
  return events.some((other) => other.kind === "fault" && other.atUs === atUs);
}

/** A line of a plan without its instant. */
function wordsOf(kind: RunEvent["kind"], text: string): string {
  return kind === "fault" ? text.replace(/^\S+ /, "") : text;
}
