/**
 * Pages in a real browser: Debian's Chromium, or what CHROMIUM names. Without one the tests say so
 * and are skipped, since everything but the looks of a page is tested elsewhere.
 */
import { existsSync } from "node:fs";
import { type Browser, chromium, type Page } from "playwright-core";
import { expect } from "vitest";

const PATHS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const { CHROMIUM = "" } = process.env;
const EXECUTABLE = [CHROMIUM, ...PATHS].find((path) => existsSync(path));

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

// What runs in the page is text: the project is compiled without the types of a browser.
const OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
const COLOURS = `{
  const style = getComputedStyle(document.body);
  [style.color, style.backgroundColor];
}`;

export interface Screen {
  readonly width: number;
  readonly colorScheme: "light" | "dark";
}

/** A page and whatever it complained of. */
export interface Opened {
  readonly page: Page;
  /** Errors, words on the console, and requests to anybody but the page's own origin. */
  readonly troubles: string[];
}

export const SCREENS: readonly Screen[] = [
  { width: 1280, colorScheme: "light" },
  { width: 1280, colorScheme: "dark" },
  { width: 400, colorScheme: "light" },
  { width: 400, colorScheme: "dark" },
];

/** Whether there is no browser here; says so, with what is left out. */
export function lacksBrowser(what: string): boolean {
  if (EXECUTABLE !== undefined) return false;
  process.stderr.write(`${what} in a browser: skipped, none of ${PATHS.join(", ")} is there\n`);
  return true;
}

export function startBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: EXECUTABLE ?? "", args: QUIET });
}

/** @param isOwn - Whether the page may ask for this address. */
export async function openPage(
  browser: Browser,
  { width, colorScheme }: Screen,
  url: string,
  isOwn: (url: string) => boolean,
): Promise<Opened> {
  const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
  const troubles: string[] = [];
  page.on("console", (message) => troubles.push(message.text()));
  page.on("pageerror", (error) => troubles.push(error.message));
  page.on("request", (request) => {
    if (!isOwn(request.url())) troubles.push(`asked for ${request.url()}`);
  });
  await page.goto(url);
  return { page, troubles };
}

/** Nothing is wider than the screen. */
export async function expectItFits(page: Page): Promise<void> {
  expect(await page.evaluate<number>(OVERFLOW)).toBe(0);
}

/** Text and ground differ by enough to be read, the right way round for the colour scheme. */
export async function expectItIsLegible(page: Page, { colorScheme }: Screen): Promise<void> {
  const [ink = 0, paper = 0] = (await page.evaluate<string[]>(COLOURS)).map(lightness);
  expect(ink > paper).toBe(colorScheme === "dark");
  expect(Math.abs(ink - paper)).toBeGreaterThan(0.6);
}

/** 0 for black, 1 for white. */
function lightness(color: string): number {
  const parts = (color.match(/\d+/g) ?? []).slice(0, 3);
  return parts.reduce((sum, part) => sum + Number(part) / 765, 0);
}
