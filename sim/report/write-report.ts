/** Writes the three files of a report into a folder, which is made when it is not there. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { toCsv, toJson } from "./data-files.ts";
import { htmlPage } from "./html-page.ts";
import type { Report } from "./report-data.ts";

/** @returns The paths written: JSON, CSV, HTML. */
export async function writeReport(folder: string, report: Report): Promise<readonly string[]> {
  await mkdir(folder, { recursive: true });
  const files: readonly (readonly [name: string, text: string])[] = [
    ["results.json", toJson(report)],
    ["results.csv", toCsv(report)],
    ["report.html", htmlPage(report)],
  ];
  for (const [name, text] of files) await writeFile(join(folder, name), text);
  return files.map(([name]) => join(folder, name));
}
