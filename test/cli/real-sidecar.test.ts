/** The verbs that ask, against a real sidecar that they find by its own configuration file. */
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
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
