/**
 * The last five minutes in `/status?history`, second by second, and the course of each limit.
 *
 * Whoever polls asks for what came after the last answer (`?history=LAST`), so that an answer is
 * small.
 */
import type { HistoryColumns, PastSeconds } from "../ports/observed.ts";
import { badRequest, excerpt, type Problem } from "./problem.ts";
import { rounded } from "./status-numbers.ts";

/** Limits whose course is told: those that decide most. */
const OUTLINES_MAX = 50;

export interface HistoryQuery {
  /** The last second that is known already. */
  readonly after: number;
  /** Whose decisions to tell; those of all limits when undefined. */
  readonly limit: string | undefined;
}

/** Undefined when no history is asked for. */
export function historyQuery(
  query: ReadonlyMap<string, string>,
): HistoryQuery | Problem | undefined {
  const after = query.get("history");
  if (after === undefined) return undefined;
  if (!/^\d{0,15}$/.test(after)) {
    return badRequest(`history must be the last second that is known, got ${excerpt(after)}`);
  }
  return { after: Number(after), limit: query.get("limit") };
}

export function historyStatus(past: PastSeconds, { after, limit }: HistoryQuery): object {
  return {
    last: past.last,
    ...(limit !== undefined && { limit }),
    ...columnsStatus(past.columns(after, limit)),
  };
}

function columnsStatus(columns: HistoryColumns): object {
  return {
    first: columns.first,
    allowed: columns.allowed.map(rounded),
    denied: columns.denied.map(rounded),
    shadow_denied: columns.shadowDenied.map(rounded),
    median_ms: columns.medianMs.map(rounded),
    p99_ms: columns.p99Ms.map(rounded),
    live_pods: columns.pods,
    tracked_keys: columns.trackedKeys,
    tier: columns.tier,
  };
}

/** The courses of the limits that decide most, by name. */
export function outlinesStatus(past: PastSeconds, names: readonly string[]): object {
  const busiest = names
    .map((name) => ({ name, outline: past.outline(name) }))
    .map((each) => ({ ...each, total: total(each.outline.admitted) + total(each.outline.denied) }))
    .filter((each) => each.total > 0)
    .sort((a, b) => b.total - a.total)
    .slice(0, OUTLINES_MAX);
  return Object.fromEntries(
    busiest.map(({ name, outline: { admitted, denied } }) => [
      name,
      { admitted: admitted.map(rounded), denied: denied.map(rounded) },
    ]),
  );
}

function total(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0);
}
