/**
 * The image, as far as it can be known without an engine that builds one: what its last stage
 * copies is put into an empty folder and started, and the Dockerfile is held to its promises.
 */
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";

const DOCKERFILE = readFileSync("Dockerfile", "utf8");
/** Instructions with their continued lines. */
const INSTRUCTIONS = DOCKERFILE.replace(/^\s*#.*\n/gm, "")
  .replace(/\\\n\s*/g, "")
  .split("\n")
  .filter((line) => line !== "");
const LAST_STAGE = INSTRUCTIONS.slice(INSTRUCTIONS.findLastIndex((line) => /^FROM /.test(line)));

interface Lock {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean }>>;
}

let app: string;

beforeAll(() => {
  const build = inject("sidecarBuild");
  if ("trouble" in build) throw new Error(build.trouble);
  const root = dirname(dirname(dirname(build.main)));
  app = mkdtempSync(join(tmpdir(), "aliquot-image-"));
  for (const line of LAST_STAGE) {
    const [, from, what] = /^COPY --from=(\w+) \/\w+\/(\S+) \.\/\S+$/.exec(line) ?? [];
    if (what === undefined) continue;
    // What `npm ci --omit=dev` installs is what the lock file does not mark as for developers.
    if (from === "dependencies") copyDependencies(join(app, what));
    else cpSync(join(root, what), join(app, what), { recursive: true });
  }
});

afterAll(() => rmSync(app, { recursive: true, force: true }));

function copyDependencies(target: string): void {
  const { packages } = JSON.parse(readFileSync("package-lock.json", "utf8")) as Lock;
  for (const [path, { dev }] of Object.entries(packages)) {
    if (dev === true || !/^node_modules\/(@[^/]+\/)?[^/]+$/.test(path)) continue;
    const name = path.slice("node_modules/".length);
    cpSync(path, join(target, name), { recursive: true });
  }
}

const run = (...args: string[]) =>
  spawnSync(process.execPath, [join(app, "dist/src/main.js"), ...args], {
    cwd: "/",
    env: {},
    encoding: "utf8",
  });

describe("what the image holds", () => {
  it("is enough to run, without anything that only developers need", () => {
    const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
    const { status, stdout, stderr } = run("version");
    expect(stderr).toBe("");
    expect(stdout).toContain(version);
    expect(status).toBe(0);
  });

  it.each([
    ["validate", "k8s/base/aliquot.yaml", "examples/redis.yaml"],
    ["validate", "k8s/example/aliquot.yaml", "examples/quickstart.yaml"],
  ])("can %s %s and %s", (verb, ...files) => {
    for (const file of files) {
      const { status, stdout, stderr } = run(verb, join(process.cwd(), file));
      expect([status, stdout, stderr]).toEqual([0, stdout, ""]);
    }
  });

  it("loads every part that a verb needs", () => {
    for (const args of [["schema"], ["openapi"], ["serve", "--help"], ["simulate", "--help"]]) {
      expect(run(...args)).toMatchObject({ status: 0, stderr: "" });
    }
  });

  it("tells an engine that is nobody there that it is not healthy", () => {
    const { status, stderr } = run("health", "--ops", "127.0.0.1:1");
    expect(status).toBe(1);
    expect(stderr).toMatch(/127\.0\.0\.1:1/);
  });
});

describe("the Dockerfile", () => {
  it("installs by the lock file, without running what packages bring", () => {
    const installs = INSTRUCTIONS.filter((line) => /npm.*(ci|install)/.test(line));
    expect(installs).toHaveLength(2);
    for (const line of installs) expect(line).toMatch(/"npm", "ci".*"--ignore-scripts"/);
  });

  it("ends in a stage without shell, as a numeric user that is not root", () => {
    expect(LAST_STAGE.filter((line) => /^(RUN|ADD) /.test(line))).toEqual([]);
    expect(LAST_STAGE[0]).toMatch(/distroless/);
    expect(LAST_STAGE).toContain("USER 65532:65532");
    for (const name of ["ENTRYPOINT", "CMD", "HEALTHCHECK"]) {
      const line = LAST_STAGE.find((each) => each.startsWith(`${name} `)) ?? "";
      const list = line.slice(line.indexOf("["));
      expect(() => JSON.parse(list)).not.toThrow();
    }
  });

  it("gets everything that it copies past the ignore file", () => {
    const letIn = readFileSync(".dockerignore", "utf8").split("\n");
    expect(letIn[0]).toBe("*");
    for (const name of ["package.json", "package-lock.json", "src", "lua", "scripts/build.mjs"]) {
      expect(letIn).toContain(`!${name}`);
    }
  });
});
