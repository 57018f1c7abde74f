/** Rules about the Lua scripts: each is a public function whose header is its contract. */
import { blanked, type ProjectFile } from "./project-files.ts";
import type { Finding, Rule } from "./tidy-rules.ts";

const isScript = ({ path }: ProjectFile): boolean => /^lua\/[^/]+\.lua$/.test(path);
const isLua = ({ path }: ProjectFile): boolean => path.endsWith(".lua");

const nameOf = ({ path }: ProjectFile): string =>
  path
    .split("/")
    .at(-1)
    ?.replace(/\.lua$/, "") ?? "";
const headerOf = (text: string): string => /^--\[\[([\s\S]*?)\]\]/.exec(text)?.[1] ?? "";

/** A script's header opens with its own name and tells keys, arguments, answer and errors. */
export const luaHeaders: Rule = (files) =>
  files.filter(isLua).flatMap((file): Finding[] => {
    if (!isScript(file)) {
      const isTold = /^(-- @include \S+\n)*(--\n)?(-- \S|--\[\[)/.test(file.text);
      return isTold ? [] : [{ path: file.path, line: 1, says: "no comment tells what this is" }];
    }
    const header = headerOf(file.text);
    return [`${nameOf(file)}: `, "KEYS[1]", "ARGV[1]", "Returns", "Errors"]
      .filter((part) => !header.includes(part))
      .map((part) => ({ path: file.path, line: 1, says: `the header does not tell "${part}"` }));
  });

/** Lua writes a number with 14 digits when it joins it to a text, so only texts may be joined. */
export const luaJoins: Rule = (files) =>
  files.filter(isLua).flatMap((file) =>
    blanked(file, "comments")
      .split("\n")
      .flatMap((line, index): Finding[] => {
        const joins = [...line.matchAll(/(\S)\s*(?<!\.)\.\.(?!\.)\s*(\S*)/g)];
        const isText = joins.every(
          ([, before = "", after = ""]) =>
            /["')]/.test(before) && /^(["']|decimal\(|string\.)/.test(after),
        );
        if (isText) return [];
        return [
          { path: file.path, line: index + 1, says: "join texts only; numbers by decimal()" },
        ];
      }),
  );

/** Every numbered key and argument that the code uses is told in the header. */
export const luaNumbers: Rule = (files) =>
  files.filter(isScript).flatMap((file): Finding[] => {
    const header = headerOf(file.text);
    const used = blanked(file, "comments").matchAll(/\b(KEYS|ARGV)\[(\d+)\]/g);
    const names = new Set([...used].map(([, list, number]) => `${list}[${number}]`));
    return [...names]
      .filter((name) => !header.includes(name))
      .map((name) => ({ path: file.path, line: 1, says: `${name} is used and not explained` }));
  });

/** A script that the loader does not name, or a file in lib that nothing includes, is dead. */
export function unusedLua(loader: ProjectFile | undefined): Rule {
  return (files) =>
    files.filter(isLua).flatMap((file): Finding[] => {
      const word = new RegExp(`["'/ ]${nameOf(file)}(?:\\.lua)?["'\\s]`);
      const users = files.filter((each) => isLua(each) && each !== file && !isScript(file));
      const used = [...users, ...(loader === undefined ? [] : [loader])].some(({ text }) =>
        word.test(text),
      );
      return used ? [] : [{ path: file.path, line: 0, says: "nothing loads this" }];
    });
}
