/**
 * The status page: one text that needs nothing else, neither a file nor the network. It holds no
 * figure; its script asks `/status` for them and writes them as text, never as markup.
 *
 * The browser is told to run this script and style by their hashes and nothing else, so that not
 * even a fault in the script could let a caller's key do anything.
 */
import { hash } from "node:crypto";
import { CHARTS_SCRIPT } from "./charts-script.ts";
import { MARKUP } from "./markup.ts";
import { POLL_SCRIPT } from "./poll-script.ts";
import { STYLE } from "./style.ts";
import { TABLES_SCRIPT } from "./tables-script.ts";
import { WORDS_SCRIPT } from "./words-script.ts";

const SCRIPT = `"use strict";(() => {
${[WORDS_SCRIPT, CHARTS_SCRIPT, TABLES_SCRIPT, POLL_SCRIPT].join("\n")}
})();`;

/** Two strokes of a whole that is divided evenly. */
const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E" +
  "%3Crect width='16' height='16' rx='3' fill='%230b6e99'/%3E" +
  "%3Cpath d='M8 2v12M2 8h12' stroke='white' stroke-width='1.5'/%3E%3C/svg%3E";

/** In ASCII. */
export const statusPage: string = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Aliquot</title>
<link rel="icon" href="${ICON}">
<style>${STYLE}</style>
</head>
<body>
${MARKUP}
<script>${SCRIPT}</script>
</body>
</html>
`;

const POLICY = [
  "default-src 'none'",
  `script-src ${sourceOf(SCRIPT)}`,
  `style-src ${sourceOf(STYLE)}`,
  "img-src data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** Names and values in turn. */
export const STATUS_PAGE_HEADERS: readonly string[] = [
  "Content-Security-Policy",
  POLICY,
  "X-Content-Type-Options",
  "nosniff",
  "Referrer-Policy",
  "no-referrer",
  "Cache-Control",
  "no-store",
];

/** Whether an Accept header names HTML, as those of browsers do. */
export function prefersHtml(accept: string | undefined): boolean {
  return (accept ?? "").split(",").some((range) => {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    return type === "text/html" && !parameters.some((each) => /^q=0(\.0*)?$/.test(each));
  });
}

function sourceOf(text: string): string {
  return `'sha256-${hash("sha256", text, "base64")}'`;
}
