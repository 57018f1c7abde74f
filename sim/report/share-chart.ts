/** Who admitted how much: a stack of bands, one per pod, that adds up to everything admitted. */
import { type PodResult, type RunResult, SERIES_STEP_US } from "../run-result.ts";
import { exactAxis, linearAxis } from "./axis.ts";
import { percent, shortNumber } from "./numbers.ts";
import { above, across, figure, frame, legendItem, svg } from "./plot.ts";
import { means } from "./series.ts";

/** Bands of their own; the other pods are one band together. */
const BANDS_MAX = 12;
/** Parts are smoothed over this, else chance is all that can be seen. */
const STEPS = 60;

export function shareFigure(result: RunResult): string {
  const { perPod, jain } = result.fleet;
  const busiest = [...perPod].sort((a, b) => b.admitted - a.admitted);
  const own = busiest.length <= BANDS_MAX + 1 ? busiest : busiest.slice(0, BANDS_MAX);
  const bands = [...own].sort((a, b) => a.pod - b.pod).map((pod) => [pod]);
  const others = busiest.slice(own.length);
  if (others.length > 0) bands.push(others);
  const by = Math.max(1, Math.ceil((perPod[0]?.admittedSeries.length ?? 1) / STEPS));
  const title = "Share per pod";
  const caption =
    `Part of all admissions, from pod 0 at the bottom up. Jain's index is ${jain.toFixed(3)}: ` +
    "1 when every pod admits the same part of what it is asked.";
  const x = exactAxis(result.durationUs / 1e6, 5);
  const y = linearAxis(1, 2);
  return figure({
    title,
    caption,
    legend: others.length > 0 ? [legendItem("band-rest", `${others.length} pods with less`)] : [],
    body: frame(
      x,
      { ...y, ticks: [] },
      "s",
      svg(title, caption, stack(bands, by, x, y)),
      "plot bare",
    ),
    table: {
      head: ["pod", "asked", "admitted", "part", "from", "to"],
      rows: busiest.map((pod) => [
        `${pod.pod}`,
        shortNumber(pod.offered),
        shortNumber(pod.admitted),
        percent(pod.offered === 0 ? 0 : pod.admitted / pod.offered),
        shortNumber(pod.joinedAtUs / 1e6),
        pod.endedAtUs === undefined ? "end" : shortNumber(pod.endedAtUs / 1e6),
      ]),
    },
  });
}

function stack(
  bands: readonly (readonly PodResult[])[],
  by: number,
  x: ReturnType<typeof exactAxis>,
  y: ReturnType<typeof linearAxis>,
): string[] {
  let floor: number[] = [];
  return bands.map((pods, i) => {
    const parts = sumOf(pods.map((pod) => means(pod.admittedSeries, by)));
    const bottom = floor.length === 0 ? parts.map(() => 0) : floor;
    const top = parts.map((part, step) => part + (bottom[step] ?? 0));
    floor = top;
    const stepS = (by * SERIES_STEP_US) / 1e6;
    const edge = (values: readonly number[]): string[] =>
      values.flatMap((value, step) => [
        `${across(x, step * stepS)} ${above(y, value)}`,
        `${across(x, (step + 1) * stepS)} ${above(y, value)}`,
      ]);
    const isRest = pods.length > 1;
    const outline = `M${edge(top).join("L")}L${edge(bottom).reverse().join("L")}Z`;
    const who = isRest ? `${pods.length} other pods` : `pod ${pods[0]?.pod}`;
    const look = isRest ? "band-rest" : `band-${i % 4}`;
    return `<path class="share ${look}" d="${outline}"><title>${who}</title></path>`;
  });
}

function sumOf(lists: readonly (readonly number[])[]): number[] {
  const [first = []] = lists;
  return first.map((_, i) => lists.reduce((sum, list) => sum + (list[i] ?? 0), 0));
}
