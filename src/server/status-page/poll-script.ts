/** Script of the status page: asks for figures, and tells when nobody answers any more. */
export const POLL_SCRIPT: string = String.raw`
const POLL_MS = 2000;
const ANSWER_MS = 4000;

const charts = [
  new Chart("decisions", [
    { name: "admitted", column: "admitted", color: "c-admitted" },
    { name: "denied", column: "denied", color: "c-denied" },
    { name: "denied by shadow", column: "shadow_denied", only: "shadow_denied", color: "c-shadow" },
  ], { least: 1, form: number }),
  new Chart("times", [
    { name: "p99", column: "p99_ms", color: "c-shadow" },
    { name: "median", column: "median_ms", color: "c-admitted" },
  ], { least: 1, isLog: true, form: number }),
  new Chart("pods", [{ name: "live pods", column: "live_pods", color: "c-other" }],
    { least: 2, isWhole: true, form: number }),
  new Chart("keys", [{ name: "tracked keys", column: "tracked_keys", color: "c-other" }],
    { least: 2, isWhole: true, form: number }),
];

const COLUMNS = ["allowed", "denied", "shadow_denied", "median_ms", "p99_ms", "live_pods",
  "tracked_keys", "tier"];

let columns;
let known;
let scope = "";
let answeredAt;
let begunAt = Date.now();
let wakeUp;
// Counts the questions: an answer to any but the last is of no use.
let turns = 0;

const forget = () => {
  columns = Object.fromEntries(COLUMNS.map((name) => [name, []]));
  known = 0;
};

// Another process answers, or so much was missed that nothing joins.
const isAnother = ({ first, last }) => known > 0 && (last < known || first > known + 1);

const remember = (history) => {
  for (const name of COLUMNS) {
    columns[name] = columns[name].concat(history[name]).slice(-SECONDS);
  }
  columns.admitted = columns.allowed.map((n, index) => n + columns.shadow_denied[index]);
  known = history.last;
};

const showScopes = (limits) => {
  const select = byId("scope");
  const names = limits.map(({ name }) => name);
  const shown = [...select.options].slice(1).map(({ value }) => value);
  if (names.join("\n") === shown.join("\n")) return;
  const options = names.map((name) => {
    const option = element("option", "", visible(name));
    option.value = name;
    return option;
  });
  select.replaceChildren(select.options[0], ...options);
  select.value = names.includes(scope) ? scope : "";
};

const state = (className, text) => {
  byId("state").className = "state " + className;
  write(byId("state"), text);
};

const showState = (status) => {
  if (status.draining) state("warn", "Stopping");
  else if (!status.started) state("warn", "Starting");
  else if (status.fallback_active) state("bad", "On fallback");
  else if (status.store.tier === "doubtful") state("warn", "Store is slow");
  else state("good", "Ready");
};

const show = (status) => {
  document.title = status.fleet + " \u2013 Aliquot";
  write(byId("fleet"), status.fleet);
  write(byId("pod"), "Pod " + visible(status.pod) + ", up " + span(status.uptime_seconds));
  write(byId("version"), "Aliquot " + status.version);
  const times = columns.p99_ms.filter((n) => n !== null);
  showState(status);
  showNotices(status);
  showTiles(status, { p99: times.at(-1) });
  showScopes(status.limits);
  showLimits(status);
  showKeys(status);
  for (const chart of charts) chart.draw(columns, known);
};

const ask = async () => {
  const limit = scope === "" ? "" : "&limit=" + encodeURIComponent(scope);
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), ANSWER_MS);
  try {
    const answer = await fetch("/status?history=" + known + limit, {
      cache: "no-store", signal: stop.signal,
    });
    if (answer.status === 404 && scope !== "") return "gone";
    if (!answer.ok) throw new Error("status " + answer.status);
    return await answer.json();
  } finally {
    clearTimeout(timer);
  }
};

const showSilence = () => {
  const silent = Math.round((Date.now() - (answeredAt ?? begunAt)) / 1000);
  document.body.classList.add("stale");
  state("bad", "No answer");
  write(byId("pod"), "The sidecar has not answered for " + span(silent) +
    (answeredAt === undefined ? "" : "; what is shown is as old"));
};

let latest;

const poll = async () => {
  clearTimeout(wakeUp);
  turns += 1;
  const turn = turns;
  let status;
  try {
    status = await ask();
  } catch {
    status = undefined;
  }
  if (turn !== turns) return;
  if (status === undefined) {
    showSilence();
  } else if (status === "gone" || isAnother(status.history)) {
    if (status === "gone") scope = "";
    forget();
    poll();
    return;
  } else {
    remember(status.history);
    answeredAt = Date.now();
    document.body.classList.remove("stale");
    latest = status;
    show(status);
  }
  // A page that nobody looks at asks for nothing.
  if (!document.hidden) wakeUp = setTimeout(poll, POLL_MS);
};

forget();
byId("scope").addEventListener("change", (event) => {
  scope = event.target.value;
  forget();
  poll();
});
byId("filter").addEventListener("input", () => latest && showLimits(latest));
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) poll();
});
poll();
`;
