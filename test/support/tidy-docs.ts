/** Rules that hold the documents to what is really there: files, headings and npm scripts. */
import { posix } from "node:path";
import type { ProjectFile } from "./project-files.ts";
import type { Finding, Rule } from "./tidy-rules.ts";

const isMarkdown = ({ path }: ProjectFile): boolean => path.endsWith(".md");

interface Mention {
  readonly path: string;
  readonly line: number;
  readonly what: string;
}

/** Everything a pattern's first group finds in the documents. */
function mentions(files: readonly ProjectFile[], pattern: RegExp): Mention[] {
  return files.filter(isMarkdown).flatMap(({ path, text }) =>
    text.split("\n").flatMap((line, index) =>
      [...line.matchAll(pattern)].map((match) => ({
        path,
        line: index + 1,
        what: match[1] as string,
      })),
    ),
  );
}

/** Links to a heading follow the way in which GitHub makes anchors of headings. */
function anchorsOf(text: string): Set<string> {
  const headings = text.replace(/^```[\s\S]*?^```/gm, "").matchAll(/^#{1,6} +(.+)$/gm);
  return new Set(
    [...headings].map(([, heading]) =>
      (heading as string)
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, "")
        .trim()
        .replace(/ /g, "-"),
    ),
  );
}

/** Relative links resolve, also to folders; an anchor is a heading of the document it is in. */
export const docLinks: Rule = (files) => {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const folders = new Set(files.flatMap(({ path }) => ancestors(path)));
  return mentions(files, /\]\(([^)\s]+)\)/g).flatMap((link): Finding[] => {
    if (/^[a-z]+:/.test(link.what)) return [];
    const [target = "", anchor] = link.what.split("#");
    const path =
      target === "" ? link.path : posix.join(posix.dirname(link.path), target).replace(/\/$/, "");
    const file = byPath.get(path);
    if (file === undefined && !folders.has(path)) {
      return [{ ...link, says: `the link ${link.what} leads nowhere` }];
    }
    if (anchor === undefined || (file !== undefined && anchorsOf(file.text).has(anchor))) return [];
    return [{ ...link, says: `${path} has no heading #${anchor}` }];
  });
};

const OURS = "src|lua|sim|fleet|bench|test|docs|examples|k8s|scripts|lint";

/** Paths of the project in backticks exist; `{a,b}`, `<name>` and `*` are patterns, not paths. */
export const docPaths: Rule = (files) => {
  const known = new Set(files.flatMap(({ path }) => [path, ...ancestors(path)]));
  return mentions(files, new RegExp(`\`((?:${OURS})/[\\w./-]*)\``, "g"))
    .filter(({ what }) => !known.has(what.replace(/\/$/, "")))
    .map((mention) => ({ ...mention, says: `there is no ${mention.what}` }));
};

/** An npm script that a document names is one that package.json has. */
export function docScripts(scripts: readonly string[]): Rule {
  return (files) =>
    mentions(files, /\bnpm (?:run (?:--silent )?([a-z][\w:-]*)|(?:test|start)\b)/g)
      .filter(({ what }) => what !== undefined && !scripts.includes(what))
      .map((mention) => ({ ...mention, says: `package.json has no script ${mention.what}` }));
}

function ancestors(path: string): string[] {
  const parts = path.split("/");
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join("/"));
}
