/**
 * The names that a short name may stand for, by resolv.conf. The resolver that leaves the event
 * loop alone asks for exactly the name it is given, while people write a Service as other programs
 * take it.
 */

/** As many as the C library ever took; each costs a question. */
const SEARCH_MAX = 6;
const NDOTS_DEFAULT = 1;

/** @returns Full names without a final dot, in the order in which they are to be asked. */
export function searchNames(name: string, resolvConf: string): readonly string[] {
  if (name.endsWith(".")) return [name.slice(0, -1)];
  const lines = resolvConf.split("\n").map((line) => line.trim().split(/\s+/));
  const lastOf = (word: string): readonly string[] =>
    lines.findLast(([first]) => first === word)?.slice(1) ?? [];
  const domains = lastOf("search").slice(0, SEARCH_MAX);
  const ndots = lastOf("options").findLast((option) => option.startsWith("ndots:"));
  const enough = ndots === undefined ? NDOTS_DEFAULT : Number(ndots.slice("ndots:".length));
  const dots = name.split(".").length - 1;
  const searched = domains.map((domain) => `${name}.${domain.replace(/\.$/, "")}`);
  return dots >= enough ? [name, ...searched] : [...searched, name];
}
