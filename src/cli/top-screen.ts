/** What `aliquot top` shows: one status as lines, fitted to a terminal. */
import type { KeyStatus, LimitStatus, StatusAnswer } from "./status-answer.ts";
import { cut, fitted, type Line, type Span, type Style, visible } from "./terminal-text.ts";
import { countText, instantText, rateText, spanText } from "./top-numbers.ts";

export interface ScreenSize {
  readonly columns: number;
  /** Infinity shows everything. */
  readonly rows: number;
  /** The terminal knows more than ASCII. */
  readonly isUnicode: boolean;
}

const KEYS_MAX = 8;
const KEYS_MIN = 3;
const RAMPS = { unicode: "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588", ascii: "_.:-=+*#" };
const NONE = "-";

/** Width, head and text of one column of the table of limits. */
type Column = readonly [columns: number, head: string, text: (limit: LimitStatus) => string];

const LIMIT_COLUMNS: readonly Column[] = [
  [6, "MODE", ({ mode }) => mode],
  [9, "RATE", (limit) => rateText(limit.rate_per_second)],
  [7, "BURST", ({ burst }) => countText(burst)],
  [7, "BOUND", (limit) => countText(limit.over_admission_bound)],
  [9, "ADMIT/S", ({ per_second: rates }) => countText(rates.allowed + rates.shadow_denied)],
  [
    8,
    "DENY/S",
    ({ shadow, per_second: rates }) =>
      shadow ? `(${countText(rates.shadow_denied)})` : countText(rates.denied),
  ],
  [
    6,
    "SHARE",
    (limit) => (limit.mode === "exact" ? NONE : `${Math.round(limit.share_ratio * 100)}%`),
  ],
  [6, "DEBT", (limit) => countText(limit.debt_tokens)],
];

/**
 * @param trouble - Why the sidecar does not answer now; the status is the last one then.
 */
export function topScreen(status: StatusAnswer, size: ScreenSize, trouble?: string): Line[] {
  const head = [titleLine(status, size), factsLine(status)];
  const told = noticeLines(status, trouble);
  const course = courseLines(status, size);
  const above = [...head, ...told, ...course, []];
  const { busiest, most_denied: mostDenied } = status.keys;
  const longest = Math.max(1, busiest.length, mostDenied.length);
  // Two lines stand between the tables, one below them.
  const room = size.rows - above.length - 4;
  const keysShown = Math.min(KEYS_MAX, longest, Math.max(KEYS_MIN, Math.floor(room / 3)));
  const limits = limitLines(status.limits, size.columns, Math.max(1, room - keysShown - 1));
  const lines = [...above, ...limits, [], ...keyLines(status, size.columns, keysShown), []];
  const foot: Line = [[`${samplingText(status.keys.sampled_every)}  q quits`, "soft"]];
  if (size.rows === Number.POSITIVE_INFINITY) return lines.slice(0, -1);
  return [...lines.slice(0, size.rows - 1), foot];
}

function titleLine(status: StatusAnswer, { columns }: ScreenSize): Line {
  const [state, style] = stateOf(status);
  const pod = `  pod ${visible(status.pod)}, up ${spanText(status.uptime_seconds)}`;
  const name = `aliquot  ${visible(status.fleet)}`;
  const left = cut(pod, columns - name.length - state.length - 2);
  return [[name, "strong"], [fitted(left, columns - name.length - state.length)], [state, style]];
}

function stateOf(status: StatusAnswer): readonly [string, Style] {
  if (status.draining) return ["Stopping", "warn"];
  if (!status.started) return ["Starting", "warn"];
  if (status.fallback_active) return ["On fallback", "bad"];
  return status.store.tier === "doubtful" ? ["Store is slow", "warn"] : ["Ready", "good"];
}

const TIERS: Readonly<Record<string, readonly [string, Style?]>> = {
  connected: ["connected"],
  doubtful: ["doubtful", "warn"],
  isolated: ["out of reach", "bad"],
};

function factsLine(status: StatusAnswer): Line {
  const { store, listing, config, history, workers } = status;
  const known = TIERS[store.tier] ?? [store.tier];
  const [tier, style] = store.kind === "embedded" ? ["embedded"] : known;
  const p99 = history.p99_ms.findLast((ms) => ms !== null);
  const listed = listing === undefined ? "" : ` (${listing.pods} listed)`;
  const { outcome, at = config.loaded_at } = config.last_reload;
  const failed = outcome === "failed";
  const loaded = `${failed ? "reload failed" : "loaded"} ${instantText(at)}`;
  const fact = (name: string, text: string, marked?: Style): Span[] => [
    [`${name} `, "soft"],
    [`${text}   `, marked],
  ];
  return [
    ...fact("store", tier ?? "", style),
    ...fact("pods", `${status.live_pods}${listed}`, listing?.up === false ? "warn" : undefined),
    ...(workers === undefined ? [] : fact("workers", ...workersFact(workers))),
    ...fact("keys", countText(status.tracked_keys)),
    ...fact("p99", p99 === undefined || p99 === null ? NONE : `${countText(p99)} ms`),
    ...fact("config", `${config.hash.slice(0, 8)}, ${loaded}`, failed ? "bad" : undefined),
  ];
}

function workersFact(
  workers: NonNullable<StatusAnswer["workers"]>,
): readonly [string, Style | undefined] {
  const { configured, up, restarts } = workers;
  const replaced = restarts === 0 ? "" : `, ${countText(restarts)} replaced`;
  if (up < configured) return [`${up} of ${configured} up${replaced}`, "bad"];
  return [`${up}${replaced}`, restarts === 0 ? undefined : "warn"];
}

function noticeLines(status: StatusAnswer, trouble: string | undefined): Line[] {
  const { last_reload: reload, needs_restart: waiting } = status.config;
  const lines: Line[] = [];
  if (trouble !== undefined) lines.push([[`! ${visible(trouble)}; the figures are old`, "bad"]]);
  for (const { source, line, field, message } of reload.problems ?? []) {
    const place = line === undefined ? source : `${source}:${line}`;
    lines.push([[`! refused: ${visible(`${place}: ${field} ${message}`)}`, "bad"]]);
  }
  if (waiting.length > 0) {
    lines.push([[`! waits for a restart: ${waiting.map(visible).join(", ")}`, "warn"]]);
  }
  return lines;
}

/** Decisions per second now, and their course over as many seconds as fit. */
function courseLines({ per_second: rates, history }: StatusAnswer, size: ScreenSize): Line[] {
  const admitted = history.allowed.map((n, index) => n + (history.shadow_denied[index] ?? 0));
  const room = Math.max(0, size.columns - 22);
  const line = (name: string, now: number, course: readonly number[], style: Style): Line => [
    [`${name.padEnd(9)} `],
    [fitted(`${countText(now)}/s`, 10, "right"), style],
    ["  "],
    [outlineText(course.slice(-room), size.isUnicode), style],
  ];
  return [
    line("admitted", rates.allowed + rates.shadow_denied, admitted, "admitted"),
    line("denied", rates.denied, history.denied, "denied"),
  ];
}

function outlineText(course: readonly number[], isUnicode: boolean): string {
  const ramp = isUnicode ? RAMPS.unicode : RAMPS.ascii;
  const most = Math.max(...course, Number.MIN_VALUE);
  return course
    .map((value) => (value === 0 ? " " : ramp[Math.floor((value / most) * (ramp.length - 1))]))
    .join("");
}

function limitLines(limits: readonly LimitStatus[], columns: number, rows: number): Line[] {
  const tables = LIMIT_COLUMNS.reduce((sum, [width]) => sum + width + 1, 0);
  const widest = Math.max(12, ...limits.map((limit) => nameOf(limit).length));
  const nameWidth = Math.max(12, Math.min(widest, columns - tables));
  const cells = (text: (column: Column) => string): string =>
    LIMIT_COLUMNS.map((column) => ` ${fitted(text(column), column[0], "right")}`).join("");
  const total = ({ per_second: rates }: LimitStatus): number =>
    rates.allowed + rates.denied + rates.shadow_denied;
  // Equal ones stay in the order of the configuration.
  const busiest = [...limits].sort((a, b) => total(b) - total(a));
  const isCut = busiest.length > rows;
  const shown = isCut ? busiest.slice(0, Math.max(1, rows - 1)) : busiest;
  const lines: Line[] = [
    [[fitted("LIMIT", nameWidth) + cells(([, head]) => head), "strong"]],
    ...shown.map((limit): Line => {
      const isIdle = total(limit) === 0;
      const isOwing = limit.debt_tokens > limit.over_admission_bound;
      const text = fitted(nameOf(limit), nameWidth) + cells((column) => column[2](limit));
      return [[text, isOwing ? "warn" : isIdle ? "soft" : undefined]];
    }),
  ];
  if (isCut) lines.push([[`${busiest.length - shown.length} more limits`, "soft"]]);
  return lines;
}

function nameOf({ name, shadow }: LimitStatus): string {
  return shadow ? `${visible(name)} (shadow)` : visible(name);
}

/** Both lists side by side. */
function keyLines({ keys }: StatusAnswer, columns: number, rows: number): Line[] {
  const width = Math.floor((columns - 3) / 2);
  const side = (title: string, ranked: readonly KeyStatus[], none: string): string[] => {
    const rateWidth = 9;
    const head = fitted(title, width - rateWidth) + fitted("CHECKS/S", rateWidth, "right");
    const texts = ranked.slice(0, rows).map(({ key, digest, limit, per_second: rate }) => {
      const name = fitted(`${visible(key ?? digest ?? "")}  ${visible(limit)}`, width - rateWidth);
      return name + fitted(countText(rate), rateWidth, "right");
    });
    return [head, ...(texts.length > 0 ? texts : [none])];
  };
  const busiest = side("BUSIEST KEYS", keys.busiest, "no checks");
  const denied = side("MOST DENIED KEYS", keys.most_denied, "nothing denied");
  return Array.from({ length: Math.max(busiest.length, denied.length) }, (_, row): Line => {
    const text = `${fitted(busiest[row] ?? "", width)}   ${fitted(denied[row] ?? "", width)}`;
    return [[text, row === 0 ? "strong" : undefined]];
  });
}

function samplingText(every: number): string {
  return every === 1 ? "keys from every decision" : `keys from one decision in ${every}`;
}
