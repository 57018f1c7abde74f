/** Files out of the documents, so that what is documented is what is tested. */
import { readFileSync } from "node:fs";
import { parse, stringify } from "yaml";

/** A fenced block of `docs/proxies/`, which stands below `<!-- file: NAME -->`. */
export function recipeFile(document: string, name: string): string {
  const text = readFileSync(new URL(`../../docs/proxies/${document}`, import.meta.url), "utf8");
  const start = text.indexOf(`<!-- file: ${name} -->`);
  const block = /^```\w+\n([\s\S]*?)^```$/m.exec(text.slice(start))?.[1];
  if (start < 0 || block === undefined) throw new Error(`${document} has no file ${name}`);
  return block;
}

/**
 * A recipe with the addresses of a test in it.
 *
 * @throws {Error} When the recipe does not hold one of them, as the test would then test nothing.
 */
export function placed(text: string, places: Readonly<Record<string, string>>): string {
  let result = text;
  for (const [documented, real] of Object.entries(places)) {
    if (!text.includes(documented)) throw new Error(`the recipe does not hold ${documented}`);
    result = result.replaceAll(documented, real);
  }
  return result;
}

/** The recipe as its document says to change it when requests are to be refused. */
export function failingClosed(text: string): string {
  const kept = text.split("\n").filter((line) => !line.trimEnd().endsWith("# fail open"));
  if (kept.length === text.split("\n").length) throw new Error("no line ends in # fail open");
  return kept.join("\n");
}

/** Policies and their common terms as documented, YAML. */
export function documentedPolicies(): string {
  const { forward, policies } = parse(recipeFile("README.md", "aliquot.yaml"));
  return stringify({ forward, policies }).trimEnd();
}
