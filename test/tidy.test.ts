/**
 * What a formatter, a linter and a compiler cannot know about this project's text.
 *
 * Each rule is shown twice: it finds a planted violation, and it finds nothing in the project.
 */
import { describe, expect, it } from "vitest";
import { reachable } from "./support/import-graph.ts";
import { blanked, type ProjectFile, projectFiles } from "./support/project-files.ts";
import { docLinks, docPaths, docScripts } from "./support/tidy-docs.ts";
import { luaHeaders, luaJoins, luaNumbers, unusedLua } from "./support/tidy-lua.ts";
import {
  bannedCalls,
  type Finding,
  foreignWords,
  leftovers,
  longFiles,
  longLines,
  longLuaFunctions,
  portsImportTypes,
  type Rule,
  raggedText,
  synonyms,
} from "./support/tidy-rules.ts";
import { BANS, FOREIGN_WORDS, LONG_FILES, RULED_OUT, THEIR_NAMES } from "./support/tidy-tables.ts";

const FILES = projectFiles();

const SCRIPTS = Object.keys(
  (JSON.parse(textOf("package.json")) as { scripts: Record<string, string> }).scripts,
);

/** Files that something outside the import graph starts, and files that need not be reached. */
const ENTRIES = FILES.map(({ path }) => path).filter(
  (path) =>
    path === "src/main.ts" ||
    path === "vitest.config.ts" ||
    path.endsWith(".test.ts") ||
    textOf("package.json").includes(path) ||
    textOf("vitest.config.ts").includes(path) ||
    textOf("package.json").includes(`dist/${path.replace(/\.ts$/, ".js")}`) ||
    textOf(".ci/run").includes(path),
);

function textOf(path: string): string {
  return FILES.find((file) => file.path === path)?.text ?? "";
}

const isSource = ({ path }: ProjectFile): boolean => /\.(ts|mjs)$/.test(path);

const unusedFiles: Rule = (files) => {
  const used = reachable(files, ENTRIES);
  return files
    .filter((file) => isSource(file) && !used.has(file.path))
    .map(({ path }) => ({ path, line: 0, says: "nothing imports this and nothing starts it" }));
};

/** What only tests need belongs to the tests. */
const untestedOnly: Rule = (files) => {
  const used = reachable(
    files,
    ENTRIES.filter((path) => !path.startsWith("test/")),
  );
  return files
    .filter((file) => /^src\//.test(file.path) && !used.has(file.path))
    .map(({ path }) => ({ path, line: 0, says: "only tests need this" }));
};

const spoken = (files: readonly ProjectFile[]): ProjectFile[] =>
  files.filter(
    ({ path }) => /^(src|lua|docs)\/|^(README|CHANGELOG)\.md$/.test(path) && path !== GLOSSARY,
  );
const GLOSSARY = "docs/glossary.md";

interface TidyRule {
  readonly says: string;
  readonly rule: Rule;
  /** Violations that the rule must find, one each. */
  readonly planted: readonly ProjectFile[];
}

const plant = (path: string, text: string): ProjectFile => ({ path, text });

const RULES: readonly TidyRule[] = [
  {
    says: "no line is longer than 100 columns",
    rule: longLines,
    planted: [
      plant("src/core/a.ts", `${"x".repeat(101)}\n`),
      plant("docs/a.md", `${"x".repeat(101)}\n`),
    ],
  },
  {
    says: "no line ends in white space, no tab is used, every file ends with a line end",
    rule: raggedText,
    planted: [plant("a.md", "x \n"), plant("b.lua", "\tx\n"), plant("c.ts", "x")],
  },
  {
    says: "no file is longer than 300 lines without a reason",
    rule: longFiles(LONG_FILES),
    planted: [plant("src/core/a.ts", "x;\n".repeat(301)), plant("lua/a.lua", "x\n".repeat(301))],
  },
  {
    says: "no Lua function is longer than 70 lines",
    rule: longLuaFunctions,
    planted: [plant("lua/a.lua", `local function f()\n${"  x = 1\n".repeat(70)}end\n`)],
  },
  {
    says: "nothing is left over to be done later",
    rule: leftovers,
    planted: [
      plant("src/a.ts", `// ${"TO" + "DO"}: later\n`),
      plant("docs/a.md", `${"FIX" + "ME"}\n`),
    ],
  },
  {
    says: "no banned call is used",
    rule: bannedCalls(BANS),
    planted: [
      plant("src/core/a.ts", "const a = Date.now();\n"),
      plant("src/server/a.ts", "const a = new Date();\n"),
      plant("src/server/b.ts", "const a = performance.now();\n"),
      plant("sim/a.ts", "const a = Math.random();\n"),
      plant("src/cli/a.ts", "process.exit(1);\n"),
      plant("lua/b.lua", "local a = tostring(1)\n"),
      plant("lua/c.lua", "local a = math.random()\n"),
    ],
  },
  {
    says: "a port has nothing to run",
    rule: portsImportTypes,
    planted: [plant("src/ports/a.ts", 'import { x } from "../core/units.ts";\n')],
  },
  {
    says: "every Lua file opens with its contract",
    rule: luaHeaders,
    planted: [
      plant("lua/lib/a.lua", 'redis.call("GET", "x")\n'),
      plant("lua/a.lua", "--[[\na: reads.\n\nKEYS[1] x\n]]\n"),
    ],
  },
  {
    says: "no number is joined to a text in Lua",
    rule: luaJoins,
    planted: [
      plant("lua/a.lua", 'local a = "n" .. 2\n'),
      plant("lua/b.lua", 'local a = n .. "x"\n'),
      plant("lua/c.lua", "local a = n .. m\n"),
    ],
  },
  {
    says: "every numbered key and argument of a script is explained in its header",
    rule: luaNumbers,
    planted: [plant("lua/a.lua", "--[[\na: KEYS[1]\n]]\nlocal a = ARGV[1]\n")],
  },
  {
    says: "every Lua file is loaded",
    rule: unusedLua(FILES.find(({ path }) => path === "src/store/redis/scripts.ts")),
    planted: [plant("lua/nobody.lua", "")],
  },
  {
    says: "every file is imported or started",
    rule: unusedFiles,
    planted: [plant("sim/nobody.ts", "")],
  },
  {
    says: "no file in src is there for tests only",
    rule: untestedOnly,
    planted: [plant("src/core/nobody.ts", "")],
  },
  {
    says: "the glossary's words are used, and not their synonyms",
    rule: (files) => synonyms(RULED_OUT, THEIR_NAMES)(spoken(files)),
    planted: [
      plant("src/a.ts", "const userQuota = 1;\n"),
      plant("src/b.ts", "// the capacity of a bucket\n"),
      plant("lua/a.lua", "local time_window = 1\n"),
      plant("docs/a.md", "Hits are counted.\n"),
      plant("README.md", "its weight\n"),
    ],
  },
  {
    says: "nothing speaks of one machine, one registry or a tracker that readers cannot see",
    rule: foreignWords(FOREIGN_WORDS, ["test/tidy.test.ts", "test/support/tidy-tables.ts"]),
    planted: [
      plant("src/a.ts", "// see issue 2\n"),
      plant("docs/a.md", `in \`/wor${"k"}/main\`\n`),
      plant("package-lock.json", `"https://regis${"try"}.npm${"js"}.org/x"\n`),
    ],
  },
  {
    says: "every link in the documents leads somewhere",
    rule: docLinks,
    planted: [plant("docs/a.md", "[x](nowhere.md)\n"), plant("docs/b.md", "# Here\n[x](#there)\n")],
  },
  {
    says: "every path that the documents name exists",
    rule: docPaths,
    planted: [plant("docs/a.md", "see `src/nowhere.ts`\n")],
  },
  {
    says: "every npm script that the documents name exists",
    rule: docScripts(SCRIPTS),
    planted: [plant("README.md", "npm run nothing\n")],
  },
];

const shown = (findings: readonly Finding[]): string[] =>
  findings.map(({ path, line, says }) => `${path}:${line} ${says}`);

describe("the project is tidy", () => {
  it.each(RULES)("$says", ({ rule }) => {
    expect(shown(rule(FILES))).toEqual([]);
  });
});

describe("the rule finds a planted violation", () => {
  it.each(RULES)("$says", ({ rule, planted }) => {
    for (const file of planted) {
      expect(shown(rule([file])).map((each) => each.split(":")[0])).toContain(file.path);
    }
  });
});

describe("blanking", () => {
  it("keeps every line where it was and removes what is no code", () => {
    const template = ["f(`g() $", "{h()}`);"].join("");
    const file = plant("src/a.ts", `a(); // b()\n/* c()\n */ d("e()"); ${template}\n`);
    const code = blanked(file, "comments and strings");
    expect(code.split("\n")).toHaveLength(4);
    expect(code.match(/[a-z]\(/g)).toEqual(["a(", "d(", "f(", "h("]);
  });
});
