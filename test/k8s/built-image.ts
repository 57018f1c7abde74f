/**
 * What an engine would make of the Dockerfile, as far as it can be made without one: each stage is
 * a folder, COPY copies, and the commands run in it. Only `npm ci` is not run, because it asks a
 * registry: its place takes what was installed here from the same lock file.
 */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import {
  type Copy,
  DockerfileParser,
  type Instruction,
  type JSONInstruction,
} from "dockerfile-ast";

export const DOCKERFILE: string = readFileSync("Dockerfile", "utf8");
const NPM_CI = /^npm ci /;

interface Stage {
  /** Its name, or its number. */
  readonly name: string;
  readonly instructions: readonly Instruction[];
}

/** Instructions of each stage; those before the first FROM belong to none. */
export function stages(): readonly Stage[] {
  const found: { name: string; instructions: Instruction[] }[] = [];
  for (const instruction of DockerfileParser.parse(DOCKERFILE).getInstructions()) {
    const args = instruction.getArguments().map((argument) => argument.getValue());
    if (instruction.getKeyword() === "FROM") {
      found.push({ name: args[2] ?? String(found.length), instructions: [] });
    }
    found.at(-1)?.instructions.push(instruction);
  }
  return found;
}

export function lastStage(): readonly Instruction[] {
  return stages().at(-1)?.instructions ?? [];
}

/** The command of an instruction in exec form. @throws {Error} When a shell had to run it. */
export function command(instruction: Instruction | undefined): readonly string[] {
  const strings = (instruction as JSONInstruction | undefined)?.getJSONStrings() ?? [];
  if (strings.length === 0) throw new Error(`no exec form: ${instruction?.toString()}`);
  return strings.map((each) => each.getJSONValue());
}

/** The command of HEALTHCHECK, which stands behind its flags and CMD. */
export function healthCommand(): readonly string[] {
  const text = lastStage()
    .find((each) => each.getKeyword() === "HEALTHCHECK")
    ?.getArgumentsContent();
  return JSON.parse(text?.slice(text.indexOf("[")) ?? "[]") as string[];
}

/** The command of ENTRYPOINT. */
export function entrypoint(): readonly string[] {
  return command(lastStage().find((each) => each.getKeyword() === "ENTRYPOINT"));
}

export class BuiltImage {
  private readonly root: string = mkdtempSync(join(tmpdir(), "aliquot-image-"));
  private place = "";

  /** Runs all stages. @throws {Error} When a command fails, or a file is not let in. */
  static build(): BuiltImage {
    const image = new BuiltImage();
    for (const stage of stages()) image.run(stage);
    // As the image's root file system is: nobody may write, and everybody may read.
    spawnSync("chmod", ["-R", "a-w,a+rX", image.root]);
    return image;
  }

  /** Where a path of the last stage is here; node is the one that runs the tests. */
  at(path: string): string {
    if (path === "/nodejs/bin/node") return process.execPath;
    return path.startsWith("/app/") ? join(this.place, path) : path;
  }

  /** A command of the image, to be run here. */
  here(words: readonly string[]): { readonly program: string; readonly args: string[] } {
    const [program = "", ...args] = words.map((word) => this.at(word));
    return { program, args };
  }

  dispose(): void {
    spawnSync("chmod", ["-R", "u+w", this.root]);
    rmSync(this.root, { recursive: true, force: true });
  }

  private run({ name, instructions }: Stage): void {
    this.place = join(this.root, name);
    mkdirSync(this.place);
    let workdir = "/";
    for (const instruction of instructions) {
      const words = instruction.getArguments().map((argument) => argument.getValue());
      if (instruction.getKeyword() === "WORKDIR") workdir = words[0] ?? "/";
      if (instruction.getKeyword() === "COPY") this.copy(instruction as Copy, words, workdir);
      if (instruction.getKeyword() === "RUN") this.execute(command(instruction), workdir);
    }
  }

  private copy(instruction: Copy, words: readonly string[], workdir: string): void {
    const from = instruction.getFromFlag()?.getValue() ?? undefined;
    const paths = words.filter((word) => !word.startsWith("--"));
    const target = join(this.place, workdir, paths.at(-1) ?? "");
    const intoFolder = paths.at(-1)?.endsWith("/") === true;
    for (const path of paths.slice(0, -1)) {
      if (from === undefined && !isLetIn(path)) throw new Error(`.dockerignore keeps ${path} out`);
      const source = from === undefined ? resolve(path) : join(this.root, from, path);
      const isFile = statSync(source).isFile();
      cpSync(source, isFile && intoFolder ? join(target, basename(path)) : target, {
        recursive: true,
      });
    }
  }

  private execute(words: readonly string[], workdir: string): void {
    const cwd = join(this.place, workdir);
    if (NPM_CI.test(words.join(" "))) {
      symlinkSync(resolve("node_modules"), join(cwd, "node_modules"));
      return;
    }
    const [program = "", ...args] = words;
    const { status, stdout, stderr } = spawnSync(program, args, { cwd, encoding: "utf8" });
    if (status !== 0) throw new Error(`${words.join(" ")}: ${stdout}${stderr}`);
    if (!existsSync(cwd)) throw new Error(`${words.join(" ")} removed its folder`);
  }
}

/** The ignore file keeps everything out, and lets in what it names. */
function isLetIn(path: string): boolean {
  const lines = readFileSync(".dockerignore", "utf8").trim().split("\n");
  return lines[0] === "*" && lines.includes(`!${path}`);
}

/** A folder that the image's user may write, as a volume is. */
export function volume(uid: number | undefined): string {
  const folder = mkdtempSync(join(tmpdir(), "aliquot-volume-"));
  chmodSync(folder, 0o755);
  if (uid !== undefined) spawnSync("chown", [`${uid}:${uid}`, folder]);
  return folder;
}
