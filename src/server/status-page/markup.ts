/** What the status page consists of before the first figure has come. */

const CHARTS = [
  ["decisions", "Decisions per second"],
  ["times", "Time of a decision, ms"],
  ["pods", "Live pods"],
  ["keys", "Tracked keys"],
].map(
  ([id, title]) => `<figure class="chart" id="chart-${id}">
<h3>${title}</h3>
<ul class="legend"></ul>
<div class="plot" tabindex="0" role="img"></div>
<p class="readout"></p>
</figure>`,
);

const LIMIT_COLUMNS = [
  "Limit",
  "Mode",
  "Rate",
  "Burst",
  "Bound",
  "Admitted/s",
  "Denied/s",
  "Share",
  "Debt",
  "Last 5 min",
];

const KEY_COLUMNS = ["Key and limit", "Checks/s"];

function tableOf(id: string, caption: string, columns: readonly string[]): string {
  const heads = columns.map((column) => `<th scope="col">${column}</th>`).join("");
  return `<table id="${id}"><caption class="unseen">${caption}</caption>
<thead><tr>${heads}</tr></thead><tbody></tbody></table>`;
}

export const MARKUP: string = `<header>
<div>
<h1>Aliquot <span id="fleet"></span></h1>
<p id="pod" class="soft"></p>
</div>
<p id="state" class="state" role="status">Waiting for the sidecar</p>
</header>
<main>
<noscript><p class="notice bad">This page needs JavaScript; <a href="/status">/status</a> has the
same as JSON, and <code>aliquot top</code> in a terminal.</p></noscript>
<div id="notices" aria-live="polite"></div>
<section aria-labelledby="now-title">
<h2 id="now-title" class="unseen">Now</h2>
<dl id="tiles"></dl>
</section>
<section aria-labelledby="past-title">
<div class="titled">
<h2 id="past-title">Last five minutes</h2>
<label for="scope">Decisions of <select id="scope"><option value="">all limits</option></select>
</label>
</div>
<div class="charts">${CHARTS.join("\n")}</div>
</section>
<section aria-labelledby="limits-title">
<div class="titled">
<h2 id="limits-title">Limits</h2>
<label for="filter" id="filter-label" hidden>Name contains
<input id="filter" type="search" autocomplete="off" spellcheck="false"></label>
</div>
<div class="card">${tableOf("limits", "Limits and what this pod decided by them", LIMIT_COLUMNS)}
<p id="more-limits" class="soft" hidden></p></div>
<p class="soft explain">Rates are those of this pod. <b>Bound</b>: tokens that the whole fleet may
admit beyond rate and burst. <b>Share</b>: mean part of the rate that this pod refills with.
<b>Debt</b>: largest among its buckets, in tokens.</p>
</section>
<section aria-labelledby="keys-title">
<h2 id="keys-title">Keys</h2>
<div class="pair">
<div class="card"><h3>Busiest</h3>${tableOf("busiest", "Keys with the most checks", KEY_COLUMNS)}
<p class="soft none" hidden>No checks in the last minute.</p></div>
<div class="card"><h3>Most denied</h3>
${tableOf("most-denied", "Keys with the most denied checks", KEY_COLUMNS)}
<p class="soft none" hidden>Nothing denied in the last minute.</p></div>
</div>
<p id="keys-note" class="soft explain"></p>
</section>
</main>
<footer><p><span id="version"></span> <a href="/metrics">/metrics</a> <a href="/status">/status</a>
<a href="/readyz?verbose">/readyz</a></p></footer>`;
