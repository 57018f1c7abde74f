/** `aliquot top` against an ops listener in process, on a terminal that the test is. */

import { beforeEach, describe, expect, it } from "vitest";
import { until } from "../../fleet/until.ts";
import type { Terminal, TerminalListener } from "../../src/cli/terminal.ts";
import { limitOf } from "../server/exact-decider.ts";
import { OpsDoor } from "../server/ops-door.ts";
import { aliquot } from "./listening-io.ts";

const UTF8 = { LANG: "C.UTF-8" };

let door: OpsDoor;
let ops: readonly string[];

beforeEach(async () => {
  door = new OpsDoor();
  await door.open();
  ops = ["--ops", `127.0.0.1:${door.port}`];
});

/** Takes down what is drawn, and lets the test press keys. */
class FakeTerminal implements Terminal {
  columns = 80;
  rows = 24;
  readonly frames: string[] = [];
  listener: TerminalListener | undefined;
  isTaken = false;

  write(text: string): void {
    this.frames.push(text);
  }

  open(listener: TerminalListener): () => void {
    this.listener = listener;
    this.isTaken = true;
    return () => {
      this.isTaken = false;
    };
  }

  /** The lines of the last frame, without what acts on the terminal. */
  get lines(): string[] {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what a terminal acts upon
    return (this.frames.at(-1) ?? "").replace(/\x1b\[[0-9;?]*[A-Za-z]/g, "").split("\r\n");
  }

  frame(count: number): Promise<void> {
    return until(`frame ${count}`, 5_000, () => this.frames.length >= count);
  }
}

describe("aliquot top without a terminal", () => {
  it("prints one picture without colours and ends", async () => {
    door.count("denied", 1, 4);
    door.passSecond();
    door.observed.keys.note([{ limit: limitOf("api"), key: "alice", cost: 1 }], []);
    const { code, stdout, stderr } = await aliquot(["top", ...ops], UTF8);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    // biome-ignore lint/suspicious/noControlCharactersInRegex: none may be there
    expect(stdout).not.toMatch(/[\x00-\x09\x0b-\x1f]/);
    const lines = stdout.split("\n");
    expect(lines[0]).toMatch(/^aliquot {2}checkout {2}pod pod-1, up 12 s +Ready$/);
    expect(lines[1]).toBe(
      "store connected   pods 4 (5 listed)   keys 7   p99 -   config abc, " +
        "reload failed 2026-11-30 00:01:00 UTC",
    );
    expect(stdout).toContain("! refused: a.yaml:3: limits[0].rate is wrong\n");
    expect(stdout).toContain("! waits for a restart: redis\n");
    expect(stdout).toContain("denied           4/s  \u2588\n");
    expect(stdout).toMatch(/\napi +hybrid +5\/s +50 +42 +0 +4 +25% +0\n/);
    expect(stdout).toMatch(/\nBUSIEST KEYS +CHECKS\/S +MOST DENIED KEYS +CHECKS\/S\n/);
    expect(stdout).toMatch(/\n[\w-]{22} {2}api +1[.\d]* +nothing denied\n$/);
  });

  it.each([
    [{ workers: 4, up: 4, restarts: 0 }, "workers 4   keys"],
    [{ workers: 4, up: 4, restarts: 1 }, "workers 4, 1 replaced   keys"],
    [{ workers: 4, up: 3, restarts: 2 }, "workers 3 of 4 up, 2 replaced   keys"],
  ])("tells how many workers there are, and whether some were replaced", async (workers, told) => {
    const many = new OpsDoor();
    many.workers = workers;
    await many.open();
    const { stdout } = await aliquot(["top", "--ops", `127.0.0.1:${many.port}`], UTF8);
    expect(stdout).toContain(`pods 4 (5 listed)   ${told}`);
  });

  it("draws with ASCII where the locale knows no more", async () => {
    door.count("denied");
    door.passSecond();
    const { stdout } = await aliquot(["top", ...ops]);
    expect(stdout).toContain("denied           1/s  #\n");
    expect(stdout).not.toMatch(/[^\n\x20-\x7e]/);
  });

  it("spells out what a terminal would act upon", async () => {
    door.areKeysShown = true;
    const key = "\x1b]0;title\x07\u202egnp\u009b2J";
    door.observed.keys.note([{ limit: limitOf("api"), key, cost: 1 }], []);
    const { stdout } = await aliquot(["top", ...ops]);
    expect(stdout).toContain("\\u{1b}]0;title\\u{7}\\u{202e}gnp\\u{9b}2J  api");
    expect(stdout).not.toContain("\x1b");
  });

  it("says where nobody answers, and ends with 4", async () => {
    const terminal = new FakeTerminal();
    const gone = await aliquot(["top", "--ops", "127.0.0.1:1"], {}, terminal);
    expect(gone).toEqual({
      code: 4,
      stdout: "",
      stderr: "aliquot top: no sidecar answers; 127.0.0.1:1: connection refused\n",
    });
    expect(terminal.frames).toEqual([]);
  });

  it("knows when somebody else answers", async () => {
    door.figures = undefined as unknown as OpsDoor["figures"];
    const { code, stderr } = await aliquot(["top", ...ops]);
    expect(code).toBe(4);
    expect(stderr).toContain(
      "no ops listener of this version of Aliquot: 500 to /status?history=0",
    );
  });
});

describe("aliquot top on a terminal", () => {
  it("draws anew each second, fits a screen that changes, and gives it back at q", async () => {
    const terminal = new FakeTerminal();
    const running = aliquot(["top", ...ops], UTF8, terminal);
    await terminal.frame(1);
    expect(terminal.isTaken).toBe(true);
    expect(terminal.lines[0]).toMatch(/^aliquot {2}checkout {2}pod pod-1, up 12 s +Ready$/);
    expect(terminal.lines.at(-1)).toBe("keys from every decision  q quits");
    expect(terminal.frames[0]).toContain("\x1b[32mReady\x1b[0m");
    door.figures = { ...door.figures, trackedKeys: 4321 };
    await terminal.frame(2);
    expect(terminal.lines[1]).toContain("keys 4321 ");
    terminal.columns = 30;
    terminal.rows = 6;
    terminal.listener?.resized();
    expect(terminal.lines).toHaveLength(6);
    expect(Math.max(...terminal.lines.map((line) => line.length))).toBeLessThanOrEqual(30);
    terminal.listener?.key("q");
    expect(await running).toEqual({ code: 0, stdout: "", stderr: "" });
    expect(terminal.isTaken).toBe(false);
  });

  it.each([
    ["Ctrl-C", (listener: TerminalListener) => listener.key("\x03")],
    ["the end of the terminal", (listener: TerminalListener) => listener.ended()],
  ])("gives the screen back at %s", async (_what, end) => {
    const terminal = new FakeTerminal();
    const running = aliquot(["top", ...ops], {}, terminal);
    await terminal.frame(1);
    end(terminal.listener as TerminalListener);
    expect((await running).code).toBe(0);
    expect(terminal.isTaken).toBe(false);
  });

  it("goes on when the sidecar stops answering, and says so", async () => {
    const terminal = new FakeTerminal();
    const running = aliquot(["top", ...ops], {}, terminal);
    await terminal.frame(1);
    await door.close();
    await terminal.frame(2);
    expect(terminal.lines[2]).toMatch(
      /^! no sidecar answers; 127\.0\.0\.1:\d+: connection refused/,
    );
    terminal.listener?.key("q");
    expect((await running).code).toBe(0);
  });

  it("has no colours with NO_COLOR, and prints once with --once", async () => {
    const terminal = new FakeTerminal();
    const plain = aliquot(["top", ...ops], { NO_COLOR: "1" }, terminal);
    await terminal.frame(1);
    terminal.listener?.key("Q");
    await plain;
    expect(terminal.frames[0]).not.toMatch(/\[\d+m/);
    const once = await aliquot(["top", "--once", ...ops], {}, terminal);
    expect(once.stdout).toContain("\x1b[32mReady\x1b[0m");
    expect(terminal.frames).toHaveLength(1);
  });
});
