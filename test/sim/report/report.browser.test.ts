/**
 * The report in a real browser: no error, nothing wider than a small screen, every chart drawn, and
 * the numbers of the page are those of results.json.
 */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { byScenario, excessOf, type Report } from "../../../sim/report/report-data.ts";
import { writeReport } from "../../../sim/report/write-report.ts";
import {
  expectItFits,
  expectItIsLegible,
  lacksBrowser,
  type Opened,
  openPage,
  SCREENS,
  type Screen,
  startBrowser,
} from "../../support/browser.ts";
import { sampleReport } from "./sample-report.ts";

// What runs in the page is text: the project is compiled without the types of a browser.
const OVERLAPS = `{
  const found = [];
  for (const group of document.querySelectorAll(".x, .y, .badges, .dots")) {
    const texts = [...group.children];
    const boxes = texts.map((text) => text.getBoundingClientRect());
    for (let i = 0; i < boxes.length; i += 1) {
      for (let j = i + 1; j < boxes.length; j += 1) {
        const [a, b] = [boxes[i], boxes[j]];
        const beside = a.right <= b.left + 1 || b.right <= a.left + 1;
        const above = a.bottom <= b.top + 1 || b.bottom <= a.top + 1;
        if (!beside && !above) found.push(texts[i].textContent + " and " + texts[j].textContent);
      }
    }
  }
  found;
}`;

describe.skipIf(lacksBrowser("report"))("the report in a browser", () => {
  let folder: string;
  let browser: Browser;
  let json: Report;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "aliquot-report-"));
    await writeReport(folder, await sampleReport());
    json = JSON.parse(await readFile(join(folder, "results.json"), "utf8")) as Report;
    browser = await startBrowser();
  });

  afterAll(async () => {
    await browser?.close();
    await rm(folder, { recursive: true });
  });

  function open(screen = SCREENS[0] as Screen): Promise<Opened> {
    const { href } = pathToFileURL(join(folder, "report.html"));
    return openPage(browser, screen, href, (url) => /^(file|data):/.test(url));
  }

  describe.each(SCREENS)("$width pixels wide, $colorScheme", (screen) => {
    test("shows everything within the screen, without an error or a request", async () => {
      const { page, troubles } = await open(screen);
      await expectItFits(page);
      expect(troubles).toEqual([]);
      await page.close();
    });

    test("no text of a chart lies on another", async () => {
      const { page } = await open(screen);
      expect(await page.evaluate<string[]>(OVERLAPS)).toEqual([]);
      await page.close();
    });

    test("text stands out from its ground", async () => {
      const { page } = await open(screen);
      await expectItIsLegible(page, screen);
      await page.close();
    });
  });

  test("every scenario has its charts, drawn, named, and with a table behind", async () => {
    const { page } = await open();
    const figures = await page.$$eval(".scenario", (sections) =>
      sections.map((section) => ({
        titles: [...section.querySelectorAll("figure h4")].map((title) => title.textContent),
        drawn: [...section.querySelectorAll("figure svg")].every(
          (svg) =>
            svg.getBoundingClientRect().width > 100 &&
            svg.querySelector("path[d^=M], rect") !== null &&
            (svg.querySelector("title")?.textContent ?? "") !== "",
        ),
        tables: section.querySelectorAll("figure table tbody tr").length,
      })),
    );
    expect(figures).toHaveLength(2);
    expect(figures[0]?.titles).toEqual([
      "Schemes side by side",
      "Admitted against the limit",
      "Excess over time",
      "Largest admission by length of span",
      "Pods that serve",
      "Share per pod",
    ]);
    expect(figures[1]?.titles).toHaveLength(3 + 2 * 3);
    for (const { drawn, tables } of figures) {
      expect(drawn).toBe(true);
      expect(tables).toBeGreaterThan(100);
    }
    await page.close();
  });

  test("the numbers are those of results.json", async () => {
    const { page } = await open({ width: 400, colorScheme: "light" });
    const shown = await page.$$eval(".overview tbody tr", (rows) =>
      rows.map((row) => ({
        scenario: row.getAttribute("data-scenario"),
        scheme: row.getAttribute("data-scheme"),
        excess: Number(row.querySelector('[data-label="Excess"]')?.getAttribute("data-value")),
        calls: Number(row.querySelector('[data-label="Calls"]')?.getAttribute("data-value")),
      })),
    );
    const expected = byScenario(json.runs).flatMap(({ scenario, bySchemes }) =>
      bySchemes.map(({ scheme, runs }) => ({
        scenario,
        scheme,
        excess: Math.max(...runs.map(({ result }) => excessOf(result))),
        calls: Math.max(...runs.map(({ result }) => result.cost.callsPerAdmit)),
      })),
    );
    expect(shown).toEqual(expected);
    expect(shown).toHaveLength(4);
    await page.close();
  });
});
