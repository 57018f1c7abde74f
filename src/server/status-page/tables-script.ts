/** Script of the status page: tiles, notices, and the tables of limits and keys. */
export const TABLES_SCRIPT: string = String.raw`
const LIMITS_SHOWN_MAX = 100;

const tiles = new Map();

const tile = (name, main, more, className) => {
  let parts = tiles.get(name);
  if (parts === undefined) {
    parts = { main: element("dd", "main"), more: element("dd", "more") };
    parts.box = element("div", "tile", element("dt", "", name), parts.main, parts.more);
    tiles.set(name, parts);
    byId("tiles").append(parts.box);
  }
  parts.box.className = "tile " + (className ?? "");
  write(parts.main, main);
  write(parts.more, more);
};

const STORE_WORDS = {
  connected: ["connected", "Redis answers", ""],
  doubtful: ["doubtful", "an answer is overdue", "warn"],
  isolated: ["out of reach", "the fallback decides", "bad"],
};

const showTiles = (status, times) => {
  const { allowed, denied, shadow_denied: shadow } = status.per_second;
  tile("Admitted", number(allowed + shadow) + "/s", shadow > 0
    ? number(shadow) + "/s past shadow limits" : "by this pod", "admitted");
  tile("Denied", number(denied) + "/s", allowed + denied + shadow > 0
    ? percent(denied / (allowed + denied + shadow)) + " of its checks" : "no checks", "denied");
  tile("Decision time", times.p99 === undefined ? "\u2013" : number(times.p99) + " ms",
    times.p99 === undefined ? "no checks in 5 min" : "p99, inside the sidecar");
  const { listing } = status;
  const isAlone = status.store.kind === "embedded";
  tile("Live pods", number(status.live_pods), isAlone ? "this one"
    : listing === undefined ? "as counted in the store"
    : number(listing.pods) + (listing.up ? " listed" : " listed last; listing is out of reach"),
    listing !== undefined && !listing.up ? "warn" : "");
  const [main, more, className] = STORE_WORDS[status.store.tier];
  if (isAlone) tile("Store", "embedded", "this pod is the whole fleet");
  else tile("Store", main, more, className);
  const { workers } = status;
  if (workers !== undefined) {
    const { configured, up, restarts } = workers;
    tile("Workers", number(up) + (up < configured ? " of " + number(configured) : ""),
      restarts === 0 ? "none was replaced" : number(restarts) + " replaced",
      up < configured ? "bad" : restarts > 0 ? "warn" : "");
  }
  tile("Tracked keys", number(status.tracked_keys), number(status.evicted_keys) + " evicted");
  const { config } = status;
  const { outcome, at } = config.last_reload;
  tile("Configuration", config.hash.slice(0, 8), outcome === "failed"
    ? "reload failed " + since(at)
    : (outcome === "ok" ? "reloaded " : "loaded ") + since(at ?? config.loaded_at),
    outcome === "failed" ? "bad" : "");
};

let noticed = "";

const notice = (className, text, lines) => {
  const made = element("div", "notice " + className, text);
  if (lines.length > 0) {
    made.append(element("ul", "", ...lines.map((line) => element("li", "", visible(line)))));
  }
  return made;
};

// For people and screen readers: told once, and again only when something changed.
const showNotices = (status) => {
  const { config } = status;
  const { outcome, at, problems = [] } = config.last_reload;
  const told = [];
  if (status.draining) told.push(["warn", "The pod is stopping: it takes no new checks.", []]);
  if (status.fallback_active) {
    told.push(["bad", "The store is out of reach. Each limit does what its fallback says: " +
      "local limits are stricter meanwhile.", []]);
  }
  if (outcome === "failed") {
    const where = ({ source, line, field, message }) =>
      source + (line === undefined ? "" : ":" + line) + ": " + field + " " + message;
    told.push(["bad", "The configuration read at " + at + " was refused; the one before stays " +
      "in force.", problems.map(where)]);
  }
  if (config.needs_restart.length > 0) {
    told.push(["warn", "Changed fields that wait for a restart:", config.needs_restart]);
  }
  const key = JSON.stringify(told);
  if (key === noticed) return;
  noticed = key;
  byId("notices").replaceChildren(...told.map((each) => notice(...each)));
};

// As many rows as things; each row is made once and then written to.
const rows = (body, things, make, fill) => {
  while (body.children.length > things.length) body.lastChild.remove();
  while (body.children.length < things.length) body.append(make());
  things.forEach((thing, index) => fill(body.children[index], thing));
};

const cells = (labels) => () => {
  const head = element("th", "");
  head.scope = "row";
  const row = element("tr", "", head);
  for (const label of labels) {
    const cell = element("td", "");
    cell.dataset.label = label;
    row.append(cell);
  }
  return row;
};

const limitRow = () => {
  const row = cells(["Mode", "Rate", "Burst", "Bound", "Admitted/s", "Denied/s", "Share", "Debt",
    "Last 5 min"])();
  row.children[0].append(element("span", ""), element("span", "badge", "shadow"),
    element("small", ""));
  row.children[1].append(element("span", ""), element("small", ""));
  row.children[9].append(drawing("svg", { class: "outline", viewBox: "0 0 110 26",
    preserveAspectRatio: "none", "aria-hidden": "true" },
    drawing("path", { class: "line c-admitted" }), drawing("path", { class: "line c-denied" })));
  return row;
};

const EMPTY_COURSE = { admitted: Array(60).fill(0), denied: [] };

const fillLimit = (outlines) => (row, limit) => {
  const [head, mode, rate, burst, bound, admitted, denied, share, debt, course] = row.children;
  const { allowed, denied: refused, shadow_denied: shadow } = limit.per_second;
  write(head.children[0], visible(limit.name));
  head.children[1].hidden = !limit.shadow;
  write(head.children[2], limit.mode_reason);
  write(mode.children[0], limit.mode);
  write(mode.children[1], "fallback " + limit.fallback);
  write(rate, perSecond(limit.rate_per_second));
  write(burst, number(limit.burst));
  write(bound, number(limit.over_admission_bound));
  write(admitted, number(allowed + shadow));
  write(denied, limit.shadow ? "0 (" + number(shadow) + ")" : number(refused));
  write(share, limit.mode === "exact" ? "\u2013" : percent(limit.share_ratio));
  write(debt, number(limit.debt_tokens));
  debt.className = limit.debt_tokens > limit.over_admission_bound ? "warn-text" : "";
  outline(course.firstChild, outlines[limit.name] ?? EMPTY_COURSE);
};

const showLimits = (status) => {
  const { limits } = status;
  byId("filter-label").hidden = limits.length <= 10;
  const wanted = byId("filter").value.trim().toLowerCase();
  const found = limits.filter(({ name }) => name.toLowerCase().includes(wanted));
  const shown = found.slice(0, LIMITS_SHOWN_MAX);
  rows(byId("limits").tBodies[0], shown, limitRow, fillLimit(status.outlines));
  const more = byId("more-limits");
  more.hidden = shown.length === limits.length;
  write(more, number(limits.length) + " limits; " + number(shown.length) + " are shown.");
};

const keyRow = () => {
  const row = cells(["Checks/s"])();
  row.children[0].append(element("code", ""), element("small", ""));
  row.children[1].append(element("span", ""), element("span", "bar"));
  return row;
};

const showKeyTable = (id, ranked) => {
  const table = byId(id);
  const most = Math.max(...ranked.map((each) => each.per_second));
  rows(table.tBodies[0], ranked, keyRow, (row, each) => {
    const [head, rate] = row.children;
    write(head.children[0], visible(each.key ?? each.digest));
    write(head.children[1], visible(each.limit));
    write(rate.children[0], number(each.per_second));
    rate.children[1].style.width = (100 * each.per_second) / most + "%";
  });
  table.hidden = ranked.length === 0;
  table.parentElement.querySelector(".none").hidden = ranked.length > 0;
};

const showKeys = ({ keys }) => {
  showKeyTable("busiest", keys.busiest);
  showKeyTable("most-denied", keys.most_denied);
  const sample = keys.sampled_every === 1 ? "every decision"
    : "one decision in " + number(keys.sampled_every);
  write(byId("keys-note"), "Checks per second at least, over half a minute, from " + sample + ". " +
    (keys.shown ? "Keys are shown as callers gave them (ops.show_keys)."
      : "Keys are shown by their digests, as in the names of Redis keys; ops.show_keys: true " +
        "shows them as they are."));
};
`;
