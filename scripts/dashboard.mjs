/**
 * Prints the Grafana dashboard as JSON: `node scripts/dashboard.mjs > dashboard.json`.
 *
 * The JSON is fifty lines of Grafana for each line that says something, so it is made and not kept.
 * What is on it is in dashboard-rows.mjs.
 */
import { writeSync } from "node:fs";
import { CHOICES, ROWS, SELECTORS } from "./dashboard-rows.mjs";

const DATASOURCE = { type: "prometheus", uid: "$datasource" };
const WIDTH = 24;
const PER_LINE = 3;
const HEIGHT = 8;

const written = (query) => query.replace(/\$(sel|lim)\b/g, (name) => SELECTORS[name]);

function panelOf({ title, unit, means, queries }, gridPos) {
  return {
    type: "timeseries",
    title,
    description: means,
    datasource: DATASOURCE,
    gridPos,
    fieldConfig: { defaults: { unit, min: 0, custom: { fillOpacity: 8 } }, overrides: [] },
    options: { legend: { displayMode: "list", placement: "bottom" }, tooltip: { mode: "multi" } },
    targets: queries.map(([query, legendFormat], index) => ({
      refId: String.fromCharCode("A".charCodeAt(0) + index),
      datasource: DATASOURCE,
      expr: written(query),
      legendFormat,
    })),
  };
}

function layOut() {
  let y = 0;
  const panels = ROWS.flatMap((row) => {
    const head = {
      type: "row",
      title: row.title,
      gridPos: { x: 0, y, w: WIDTH, h: 1 },
      panels: [],
    };
    const w = WIDTH / PER_LINE;
    const below = row.panels.map((panel, index) => {
      const line = Math.floor(index / PER_LINE);
      return panelOf(panel, { x: (index % PER_LINE) * w, y: y + 1 + line * HEIGHT, w, h: HEIGHT });
    });
    y += 1 + Math.ceil(row.panels.length / PER_LINE) * HEIGHT;
    return [head, ...below];
  });
  return panels.map((panel, index) => ({ id: index + 1, ...panel }));
}

const dashboard = {
  uid: "aliquot",
  title: "Aliquot",
  tags: ["aliquot"],
  schemaVersion: 39,
  editable: true,
  refresh: "30s",
  time: { from: "now-1h", to: "now" },
  templating: {
    list: [
      { name: "datasource", type: "datasource", query: "prometheus" },
      ...CHOICES.map(([name, query]) => ({
        name,
        type: "query",
        datasource: DATASOURCE,
        query: written(query),
        refresh: 2,
        multi: true,
        includeAll: true,
        allValue: ".*",
        current: { text: "All", value: "$__all" },
      })),
    ],
  },
  panels: layOut(),
};

writeSync(1, `${JSON.stringify(dashboard, null, 2)}\n`);
