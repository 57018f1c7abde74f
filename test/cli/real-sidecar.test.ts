/** The verbs that ask, against a real sidecar that they find by its own configuration file. */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, inject, it } from "vitest";
import { until } from "../../fleet/until.ts";
import { type Sidecar, startSidecar, stopSidecars } from "../support/sidecar.ts";
import { aliquot } from "./listening-io.ts";

afterEach(stopSidecars);

const limits = "  - { name: scarce, rate: 1/h, burst: 10 }";

const configOf = (sidecar: Sidecar): readonly string[] => [
  "--config",
  join(sidecar.folder, "config.yaml"),
];

describe("the verbs that ask a real sidecar", () => {
  it("wait for it, find it healthy, and spend what they say", async () => {
    const sidecar = await startSidecar({ limits, unready: true });
    const config = configOf(sidecar);
    expect(await aliquot(["wait", ...config])).toEqual({ code: 0, stdout: "", stderr: "" });
    expect((await aliquot(["health", ...config])).code).toBe(0);

    const peek = await aliquot(["check", "scarce", "k", "--cost", "0", ...config]);
    expect([peek.code, peek.stdout]).toEqual([0, expect.stringContaining("scarce, 10 remaining")]);
    const spend = await aliquot(["check", "scarce", "k", "--cost", "10", ...config]);
    expect([spend.code, spend.stdout]).toEqual([0, expect.stringContaining("0 remaining")]);
    const denied = await aliquot(["check", "scarce", "k", ...config]);
    expect([denied.code, denied.stdout]).toEqual([
      3,
      expect.stringMatching(/^denied: .*retry after/),
    ]);
    const never = await aliquot(["check", "scarce", "k", "--cost", "11", ...config]);
    expect([never.code, never.stdout]).toEqual([3, expect.stringContaining("never possible")]);
  });

  it("tell what is wrong with a limit that is not configured", async () => {
    const sidecar = await startSidecar({ limits });
    const ran = await aliquot(["check", "scarse", "k", ...configOf(sidecar)]);
    expect(ran.code).toBe(1);
    expect(ran.stderr).toMatch(/answered 404: .*"scarse".*scarce/);
  });

  it("exit with 4 once it has stopped", async () => {
    const sidecar = await startSidecar({ limits });
    expect(await sidecar.terminate()).toEqual({ code: 0, signal: null });
    const config = configOf(sidecar);
    expect((await aliquot(["check", "scarce", "k", ...config])).code).toBe(4);
    expect((await aliquot(["wait", "--timeout", "0s", ...config])).code).toBe(4);
    expect((await aliquot(["health", ...config])).code).toBe(1);
  });
});

const SCRIPT = "/usr/bin/script";

// util-linux has it, and so every Debian; what it tests needs a real pseudo-terminal.
describe.skipIf(!existsSync(SCRIPT))("aliquot top on a pseudo-terminal", () => {
  it("takes the screen, quits at a key, and gives the screen back", async () => {
    const build = inject("sidecarBuild");
    if ("trouble" in build) throw new Error(build.trouble);
    const sidecar = await startSidecar({ limits });
    const command = `${process.execPath} ${build.main} top --config ${sidecar.config}`;
    const child = spawn(SCRIPT, ["-qec", command, "/dev/null"], {
      stdio: ["pipe", "pipe", "pipe"],
    });
    let screen = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      screen += text;
    });
    const code = new Promise<number | null>((resolve) => child.once("close", resolve));
    await until("the screen is drawn", 20_000, () => screen.includes("q quits"));
    child.stdin.write("q");
    expect(await code).toBe(0);
    expect(screen.indexOf("\x1b[?1049h")).toBe(0);
    expect(screen.trimEnd().endsWith("\x1b[?25h\x1b[?1049l")).toBe(true);
    expect(screen).toMatch(/scarce +sole +1\/h/);
  });
});
