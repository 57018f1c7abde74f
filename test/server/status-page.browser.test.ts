/**
 * The status page in a real browser, on a real sidecar: no error, no request to anybody else,
 * nothing wider than a small screen, figures that follow the load, and callers' texts that do
 * nothing.
 */
import { writeFileSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../fleet/until.ts";
import { keyDigest } from "../../src/store/redis/keys.ts";
import {
  expectItFits,
  expectItIsLegible,
  lacksBrowser,
  type Opened,
  openPage,
  SCREENS,
  type Screen,
  startBrowser,
} from "../support/browser.ts";
import { type Sidecar, startSidecar, stopSidecars } from "../support/sidecar.ts";
import { OpsDoor } from "./ops-door.ts";

/** What runs as soon as anything takes it for markup, and what misleads whoever reads it. */
const HOSTILE = [
  '<img src=x onerror="document.title=1">',
  "</script><script>document.title=2</script>",
  '"><svg onload=document.title=3>',
  "javascript:document.title=4",
];
const MIRRORED = "\u202egnp.exe";

const LIMITS = `
  - { name: api, rate: 1/h, burst: 40 }
  - { name: login, rate: 1/h, burst: 2 }
  - { name: watch, rate: 1/h, burst: 1, shadow: true }
`;

const HAS_COURSE = `/[0-9]/.test(
  document.querySelector("#chart-decisions .line").getAttribute("d"))`;

const HIGHEST = `Math.min(...document.querySelector("#chart-decisions .line").getAttribute("d")
  .match(/ [0-9.]+/g).map(Number))`;

describe.skipIf(lacksBrowser("status page"))("the status page in a browser", () => {
  let browser: Browser;
  let sidecar: Sidecar;

  beforeAll(async () => {
    [browser, sidecar] = await Promise.all([
      startBrowser(),
      startSidecar({ limits: LIMITS, extra: "ops: { show_keys: true }" }),
    ]);
  });

  afterAll(async () => {
    await browser?.close();
    await stopSidecars();
  });

  async function open(screen = SCREENS[0] as Screen): Promise<Opened> {
    const home = `http://127.0.0.1:${sidecar.opsPort}/`;
    const isOwn = (url: string): boolean => url.startsWith(home) || url.startsWith("data:");
    const opened = await openPage(browser, screen, home, isOwn);
    await opened.page.locator("#limits tbody tr").first().waitFor();
    return opened;
  }

  const cell = (page: Page, row: number, label: string) =>
    page.locator("#limits tbody tr").nth(row).locator(`td[data-label="${label}"]`);

  /** Waits until the page shows a text; it asks for figures every two seconds. */
  const shows = (page: Page, selector: string, text: string | RegExp): Promise<void> =>
    page.locator(selector).filter({ hasText: text }).first().waitFor({ timeout: 15_000 });

  test("figures move under load, keys are ranked, and a limit can be looked at alone", async () => {
    const { page, troubles } = await open();
    await until("a chart is drawn", 10_000, () => page.evaluate<boolean>(HAS_COURSE));
    expect(await page.evaluate<number>(HIGHEST)).toBe(150);
    for (let i = 0; i < 60; i += 1) await sidecar.check("api", "busy");
    for (let i = 0; i < 8; i += 1) await sidecar.check("login", "alice");
    for (let i = 0; i < 3; i += 1) await sidecar.check("watch", "w");
    await shows(page, "#busiest tbody tr:first-child", /busy/);
    await shows(page, "#most-denied tbody tr:first-child", /busy/);
    await shows(page, "#tiles .admitted .main", /^[1-9]/);
    await shows(page, "#tiles .denied .main", /^[1-9]/);
    expect(await page.evaluate<number>(HIGHEST)).toBeLessThan(100);
    expect(await page.locator("#limits tbody th > span:first-child").allTextContents()).toEqual([
      "api",
      "login",
      "watch",
    ]);
    expect(await cell(page, 0, "Rate").textContent()).toBe("1/h");
    expect(await cell(page, 1, "Burst").textContent()).toBe("2");
    expect(await cell(page, 2, "Denied/s").textContent()).toMatch(/^0 \([0-9.]+\)$/);
    expect(await page.locator(".badge:visible").count()).toBe(1);

    await page.selectOption("#scope", "login");
    await shows(page, "#chart-decisions .readout", /^now: admitted/);
    const columns = await page.evaluate<string>(
      `fetch("/status?history&limit=login").then((answer) => answer.json())
        .then(({ history }) => String(history.denied.reduce((sum, n) => sum + n, 0)))`,
    );
    expect(Number(columns)).toBeCloseTo(6, 0);
    expect(troubles).toEqual([]);
    await page.close();
  });

  describe.each(SCREENS)("$width pixels wide, $colorScheme", (screen) => {
    test("shows everything within the screen, without an error or a request", async () => {
      const { page, troubles } = await open(screen);
      await shows(page, "#state", "Ready");
      await expectItFits(page);
      await expectItIsLegible(page, screen);
      expect(troubles).toEqual([]);
      await page.close();
    });
  });

  test("what callers sent is text and nothing else", async () => {
    for (const key of [...HOSTILE, MIRRORED, "k".repeat(256)]) {
      for (let i = 0; i < 30; i += 1) await sidecar.check("login", key);
    }
    const { page, troubles } = await open({ width: 400, colorScheme: "light" });
    const markup = "document.querySelectorAll('img, svg[onload], script, main a').length";
    for (const key of HOSTILE) await shows(page, "#busiest code", key);
    await shows(page, "#most-denied code", "\\u{202e}gnp.exe");
    expect(await page.evaluate<number>(markup)).toBe(1);
    expect(await page.title()).toBe("test \u2013 Aliquot");
    await expectItFits(page);
    expect(troubles).toEqual([]);
    await page.close();
  });

  test("a chart can be read with the keyboard, and is told to screen readers", async () => {
    const { page } = await open();
    const plot = page.locator("#chart-decisions .plot");
    expect(await plot.getAttribute("aria-label")).toMatch(/^Decisions per second, now: admitted/);
    await plot.focus();
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("ArrowLeft");
    await shows(page, "#chart-decisions .readout", /^2 s ago: admitted/);
    expect(await plot.getAttribute("aria-label")).toMatch(/, 2 s ago: admitted/);
    await page.keyboard.press("Escape");
    await shows(page, "#chart-decisions .readout", /^now:/);
    const nameless = `[...document.querySelectorAll("select, input, table, [tabindex]")].filter(
      (node) => !node.labels?.length && !node.caption && !node.hasAttribute("aria-label"),
    ).length`;
    expect(await page.evaluate<number>(nameless)).toBe(0);
    await page.close();
  });

  test("a refused configuration is told, and digests take the place of keys", async () => {
    const { page, troubles } = await open();
    await shows(page, "#keys-note", "as callers gave them");
    writeFileSync(sidecar.config, sidecar.yaml({ extra: "ops: { show_keys: maybe }" }));
    await shows(page, "#notices", /was refused.*ops\.show_keys must be true or false/s);
    await shows(page, "#tiles .bad .more", /reload failed/);
    writeFileSync(sidecar.config, sidecar.yaml({ extra: "ops: { show_keys: false }" }));
    await shows(page, "#keys-note", "by their digests");
    await shows(page, "#busiest code", keyDigest("login", MIRRORED));
    expect(await page.locator("#notices").textContent()).toBe("");
    expect(await page.locator("body").textContent()).not.toContain("gnp.exe");
    expect(troubles).toEqual([]);
    await page.close();
  });

  test("workers are told of where other processes decide, and that some were replaced", async () => {
    const door = new OpsDoor();
    door.workers = { workers: 4, up: 3, restarts: 2 };
    await door.open();
    const home = `http://127.0.0.1:${door.port}/`;
    const { page, troubles } = await openPage(browser, SCREENS[0] as Screen, home, (url) => {
      return url.startsWith(home) || url.startsWith("data:");
    });
    await shows(page, "#tiles .bad .main", "3 of 4");
    await shows(page, "#tiles .bad .more", "2 replaced");
    await expectItFits(page);
    expect(troubles).toEqual([]);
    await page.close();
  });

  test("a sidecar that stops answering is told, and one that answers again", async () => {
    const { page } = await open();
    await shows(page, "#state", "Ready");
    sidecar.signal("SIGSTOP");
    try {
      await shows(page, "#state", "No answer");
      await shows(page, "#pod", "has not answered for");
      await page.locator("body.stale").waitFor();
    } finally {
      sidecar.signal("SIGCONT");
    }
    await shows(page, "#state", "Ready");
    expect(await page.locator("body.stale").count()).toBe(0);
    await page.close();
  });
});
