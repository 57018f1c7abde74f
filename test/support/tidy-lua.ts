/** Rules about the Lua scripts: each is a public function whose header is its contract. */
import { blanked, type ProjectFile } from "./project-files.ts";
import type { Finding, Rule } from "./tidy-rules.ts";

const isScript = ({ path }: ProjectFile): boolean => /^lua\/[^/]+\.lua$/.test(path);
const isLua = ({ path }: ProjectFile): boolean => path.endsWith(".lua");

const headerOf = (text: string): string => /^--\[\[([\s\S]*?)\]\]/.exec(text)?.[1] ?? "";

/** The header opens with the script's own name and tells keys, arguments and answer. */
export const luaHeaders: Rule = (files) =>
  files.filter(isLua).flatMap((file): Finding[] => {
    const header = headerOf(file.text);
    const name =
      file.path
        .split("/")
        .at(-1)
        ?.replace(/\.lua$/, "") ?? "";
    const wanted = isScript(file)
      ? [`${name}: `, "KEYS", "ARGV", "Returns", "Errors"]
      : [`${name}: `];
    return wanted
      .filter((part) => !header.includes(part))
      .map((part) => ({ path: file.path, line: 1, says: `the header does not tell "${part}"` }));
  });

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

/** A script nobody loads, or a file in lib that no script includes, is dead. */
export function unusedLua(loader: ProjectFile | undefined): Rule {
  return (files) => {
    const scripts = files.filter(isScript);
    const texts = files.filter(isLua).map(({ text }) => text);
    return files.filter(isLua).flatMap((file): Finding[] => {
      const name =
        file.path
          .split("/")
          .at(-1)
          ?.replace(/\.lua$/, "") ?? "";
      const word = new RegExp(`["'/ ]${name}(?:\\.lua)?["'\\s]`);
      const used = scripts.includes(file)
        ? loader !== undefined && word.test(loader.text)
        : texts.some((text) => text !== file.text && word.test(text)) ||
          (loader !== undefined && word.test(loader.text));
      return used ? [] : [{ path: file.path, line: 0, says: "nothing loads this" }];
    });
  };
}
