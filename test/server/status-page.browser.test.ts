/**
 * The status page in a real browser, on a real sidecar: no error, no request to anybody else,
 * nothing wider than a small screen, figures that follow the load, and callers' texts that do
 * nothing.
 *
 * The browser is Debian's Chromium, or what CHROMIUM names; without one these tests say so and are
 * skipped, since a sidecar works without them.
 */
import { existsSync, writeFileSync } from "node:fs";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { keyDigest } from "../../src/store/redis/keys.ts";
import { type Sidecar, startSidecar, stopSidecars } from "../support/sidecar.ts";
import { until } from "../support/until.ts";

const PATHS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const { CHROMIUM = "" } = process.env;
const EXECUTABLE = [CHROMIUM, ...PATHS].find((path) => existsSync(path));

if (EXECUTABLE === undefined) {
  process.stderr.write(`status page in a browser: skipped, none of ${PATHS.join(", ")} is there\n`);
}

/** Nothing that a browser does by itself may reach for the network. */
const QUIET = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

const SCREENS = [
  { width: 1280, colorScheme: "light" },
  { width: 1280, colorScheme: "dark" },
  { width: 400, colorScheme: "light" },
  { width: 400, colorScheme: "dark" },
] as const;

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

// What runs in the page is text: the project is compiled without the types of a browser.
const OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
const COLOURS = `{
  const style = getComputedStyle(document.body);
  [style.color, style.backgroundColor];
}`;
const HAS_COURSE = `/[0-9]/.test(
  document.querySelector("#chart-decisions .line").getAttribute("d"))`;

const HIGHEST = `Math.min(...document.querySelector("#chart-decisions .line").getAttribute("d")
  .match(/ [0-9.]+/g).map(Number))`;

/** 0 for black, 1 for white. */
function lightness(color: string): number {
  const parts = (color.match(/\d+/g) ?? []).slice(0, 3);
  return parts.reduce((sum, part) => sum + Number(part) / 765, 0);
}

describe.skipIf(EXECUTABLE === undefined)("the status page in a browser", () => {
  let browser: Browser;
  let sidecar: Sidecar;
  const troubles: string[] = [];

  beforeAll(async () => {
    [browser, sidecar] = await Promise.all([
      chromium.launch({ executablePath: EXECUTABLE ?? "", args: QUIET }),
      startSidecar({ limits: LIMITS, extra: "ops: { show_keys: true }" }),
    ]);
  });

  afterAll(async () => {
    await browser?.close();
    await stopSidecars();
  });

  async function open(width = 1280, colorScheme: "light" | "dark" = "light"): Promise<Page> {
    const home = `http://127.0.0.1:${sidecar.opsPort}/`;
    const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
    troubles.length = 0;
    page.on("console", (message) => troubles.push(message.text()));
    page.on("pageerror", (error) => troubles.push(error.message));
    page.on("request", (request) => {
      const isOwn = request.url().startsWith(home) || request.url().startsWith("data:");
      if (!isOwn) troubles.push(`asked for ${request.url()}`);
    });
    await page.goto(home);
    await page.locator("#limits tbody tr").first().waitFor();
    return page;
  }

  const cell = (page: Page, row: number, label: string) =>
    page.locator("#limits tbody tr").nth(row).locator(`td[data-label="${label}"]`);

  /** Waits until the page shows a text; it asks for figures every two seconds. */
  const shows = (page: Page, selector: string, text: string | RegExp): Promise<void> =>
    page.locator(selector).filter({ hasText: text }).first().waitFor({ timeout: 15_000 });

  test("figures move under load, keys are ranked, and a limit can be looked at alone", async () => {
    const page = await open();
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

  describe.each(SCREENS)("$width pixels wide, $colorScheme", ({ width, colorScheme }) => {
    test("shows everything within the screen, without an error or a request", async () => {
      const page = await open(width, colorScheme);
      await shows(page, "#state", "Ready");
      expect(await page.evaluate<number>(OVERFLOW)).toBe(0);
      const [ink = 0, paper = 0] = (await page.evaluate<string[]>(COLOURS)).map(lightness);
      expect(ink > paper).toBe(colorScheme === "dark");
      expect(Math.abs(ink - paper)).toBeGreaterThan(0.6);
      expect(troubles).toEqual([]);
      await page.close();
    });
  });

  test("what callers sent is text and nothing else", async () => {
    for (const key of [...HOSTILE, MIRRORED, "k".repeat(256)]) {
      for (let i = 0; i < 30; i += 1) await sidecar.check("login", key);
    }
    const page = await open(400);
    const markup = "document.querySelectorAll('img, svg[onload], script, main a').length";
    for (const key of HOSTILE) await shows(page, "#busiest code", key);
    await shows(page, "#most-denied code", "\\u{202e}gnp.exe");
    expect(await page.evaluate<number>(markup)).toBe(1);
    expect(await page.title()).toBe("test \u2013 Aliquot");
    expect(await page.evaluate<number>(OVERFLOW)).toBe(0);
    expect(troubles).toEqual([]);
    await page.close();
  });

  test("a chart can be read with the keyboard, and is told to screen readers", async () => {
    const page = await open();
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
    const page = await open();
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

  test("a sidecar that stops answering is told, and one that answers again", async () => {
    const page = await open();
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
