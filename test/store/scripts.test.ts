import { describe, expect, it } from "vitest";
import {
  loadScript,
  readScriptFile,
  SCRIPT_NAMES,
  SCRIPTS,
} from "../../src/store/redis/scripts.ts";

const files = (texts: Record<string, string>) => (path: string) => {
  const text = texts[path];
  if (text === undefined) throw new Error(`ENOENT ${path}`);
  return text;
};

describe("the loader of Lua scripts", () => {
  it("puts each included file in place, once, wherever it is named again", () => {
    const read = files({
      "main.lua": "-- @include lib/a.lua\n  -- @include lib/b.lua\nreturn 1",
      "lib/a.lua": "local a = 1",
      "lib/b.lua": "-- @include a.lua\nlocal b = a",
    });
    expect(loadScript("main.lua", read)).toBe("local a = 1\n\nlocal b = a\nreturn 1");
  });

  it("takes only a whole comment line for an include", () => {
    const text = 'local s = "-- @include lib/a.lua" -- @include lib/b.lua\n--- @include lib/c.lua';
    expect(loadScript("main.lua", files({ "main.lua": text }))).toBe(text);
  });

  it("names the chain of files when they include each other", () => {
    const read = files({
      "main.lua": "-- @include lib/a.lua",
      "lib/a.lua": "-- @include b.lua",
      "lib/b.lua": "-- @include ../lib/a.lua",
    });
    expect(() => loadScript("main.lua", read)).toThrow(
      "Lua files include each other: main.lua > lib/a.lua > lib/b.lua > lib/a.lua",
    );
  });

  it("names the missing file and who wanted it", () => {
    const read = files({ "main.lua": "-- @include lib/a.lua" });
    expect(() => loadScript("main.lua", read)).toThrow(
      "cannot read the Lua file lib/a.lua (main.lua > lib/a.lua)",
    );
  });
});

describe.each(SCRIPT_NAMES.map((name) => ({ name })))("the script $name", ({ name }) => {
  const shape = SCRIPTS[name];
  const header = /^--\[\[([\s\S]*?)\]\]/.exec(readScriptFile(shape.file))?.[1] ?? "";
  const numbered = (list: string): number[] =>
    [...header.matchAll(new RegExp(`^${list}\\[(\\d+)\\]`, "gm"))].map(([, n]) => Number(n));

  it("tells the keys and arguments that the script table has", () => {
    const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i + 1);
    expect(numbered("KEYS")).toEqual(upTo(shape.keys));
    expect(numbered("ARGV")).toEqual(upTo(shape.args));
    expect(header.includes(`KEYS[${shape.keys + 1}..]`)).toBe(shape.moreKeys);
  });

  it("loads with everything that it includes", () => {
    expect(loadScript(shape.file)).not.toMatch(/^\s*--\s*@include/m);
  });
});
