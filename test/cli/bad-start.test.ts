/** The program itself, started as a process with files that it must refuse. */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, inject, it } from "vitest";
import { aliquot, type Ran } from "./listening-io.ts";

const folder = mkdtempSync(join(tmpdir(), "aliquot-start-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const good = ["version: 1", "limits:", "  - name: twice", "    rate: 2/h", "    burst: 2", ""].join(
  "\n",
);
const example = readFileSync("examples/quickstart.yaml", "utf8");

const BAD: readonly [what: string, text: string, says: RegExp][] = [
  ["a misspelt field", good.replace("burst: 2", "burts: 10"), /:5:5: limits\[0\]\.burts: unknown/],
  [
    "two limits of one name",
    `${good}  - name: twice\n    rate: 2/h\n`,
    /:6:11: limits\[1\]\.name: is a duplicate of line 3/,
  ],
  ["a negative rate", good.replace("2/h", "-5/s"), /:4:11: limits\[0\]\.rate: must be positive/],
  ["a file cut in half", example.slice(0, example.length / 2), /:[0-9]+:[0-9]+: /],
  ["an empty file", "", /:1:1: the file is empty/],
  ["a rate that is a word", good.replace("2/h", "ten"), /:4:11: limits\[0\]\.rate: .*got "ten"/],
];

describe("O15 a bad config at start", () => {
  it("would be accepted without its fault", async () => {
    const path = join(folder, "good.yaml");
    writeFileSync(path, good);
    expect((await aliquot(["validate", path])).code).toBe(0);
  });

  it.each(BAD)(
    "is refused with code 2, file and place, and nothing is started: %s",
    async (_, text, says) => {
      const path = join(folder, "config.yaml");
      writeFileSync(path, text);
      const started = performance.now();
      const { code, stdout, stderr } = await aliquot(["serve", "--config", path]);
      expect(performance.now() - started).toBeLessThan(5_000);
      expect([code, stdout]).toEqual([2, ""]);
      expect(stderr.startsWith(path)).toBe(true);
      expect(stderr).toMatch(says);
    },
  );

  it("ends the process with code 2 within 5 s", async () => {
    const path = join(folder, "process.yaml");
    writeFileSync(path, good.replace("2/h", "ten"));
    const { code, stdout, stderr } = await runProgram(["serve", "--config", path]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain(`${path}:4:11: limits[0].rate: `);
  });
});

describe("the compiled program", () => {
  it("connects the command line to the process", async () => {
    const ran = await runProgram(["validate", "examples/redis.yaml"]);
    expect(ran).toEqual(await aliquot(["validate", "examples/redis.yaml"]));
    expect(ran.code).toBe(0);
    expect((await runProgram(["version"])).stdout).toMatch(
      /^aliquot [0-9]+\.[0-9]+\.[0-9]+ \(node v/,
    );
  });
});

function runProgram(args: readonly string[]): Promise<Ran> {
  const build = inject("sidecarBuild");
  if ("trouble" in build) throw new Error(build.trouble);
  const command = [build.main, ...args];
  // No variables of ours: the file alone decides.
  const options = { timeout: 5_000, env: {} };
  return new Promise((resolve) => {
    execFile(process.execPath, command, options, (error, stdout, stderr) => {
      const code = error === null ? 0 : error.code;
      resolve({ code: typeof code === "number" ? code : Number.NaN, stdout, stderr });
    });
  });
}
