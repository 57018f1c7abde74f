/**
 * `aliquot top`: what the status page shows, in a terminal, anew each second.
 *
 * Where there is no terminal (a pipe, a file) it prints one picture and ends.
 */
import { CONFIG_OPTION, settingOptions } from "./configuration.ts";
import { opsPlace, type Place, UnreachableError } from "./sidecar.ts";
import { askStatus, type StatusAnswer } from "./status-answer.ts";
import type { Terminal } from "./terminal.ts";
import { painted } from "./terminal-text.ts";
import { type ScreenSize, topScreen } from "./top-screen.ts";
import { EXIT, type Io, type Verb } from "./verb.ts";

const LOOK_MS = 1_000;
/** Seconds of history that any terminal can show. */
const COURSE_SECONDS = 300;
/** Where the width is not known, nobody cuts lines for us. */
const COLUMNS_UNKNOWN = 120;

const CTRL_C = "\x03";
const HOME = "\x1b[H";
const CLEAR_LINE = "\x1b[K";
const CLEAR_BELOW = "\x1b[J";

export const top: Verb = {
  name: "top",
  summary: "Watch a running sidecar: its limits, rates, store and busiest keys.",
  operands: "",
  operandCount: [0, 0],
  options: [
    { name: "once", value: undefined, help: "print one picture and end, as without a terminal" },
    CONFIG_OPTION,
    ...settingOptions("ops"),
  ],
  examples: [
    ["aliquot top", "watch the sidecar of this pod; q ends it"],
    ["aliquot top --ops 10.1.2.3:8792", "watch another pod's"],
    ["aliquot top --once | head", "one picture, without colours"],
  ],
  async run({ flags }, io) {
    const places = await opsPlace(flags, io);
    const first = await askStatus(places, 0);
    const { terminal } = io;
    if (terminal !== undefined && flags.get("once") !== "true") {
      await new Watch(terminal, io.env, places).run(first);
      return EXIT.ok;
    }
    const size = { ...sizeOf(terminal, io.env), rows: Number.POSITIVE_INFINITY };
    const hasColours = terminal !== undefined && mayColour(io.env);
    const lines = topScreen(first, size).map((line) => painted(line, size.columns, hasColours));
    io.stdout(`${lines.join("\n")}\n`);
    return EXIT.ok;
  },
};

/** One sitting before the terminal. */
class Watch {
  readonly #terminal: Terminal;
  readonly #env: Io["env"];
  readonly #places: readonly Place[];
  #status: StatusAnswer | undefined;
  #trouble: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isOver = false;

  constructor(terminal: Terminal, env: Io["env"], places: readonly Place[]) {
    this.#terminal = terminal;
    this.#env = env;
    this.#places = places;
  }

  /** Resolves when the person has seen enough. Rejects only for bugs; the screen is given back. */
  async run(first: StatusAnswer): Promise<void> {
    this.#status = first;
    let close = (): void => {};
    try {
      await new Promise<void>((resolve, reject) => {
        close = this.#terminal.open({
          key: (text) => {
            if (/[qQ]/.test(text) || text.includes(CTRL_C)) resolve();
          },
          resized: () => this.#draw(),
          ended: resolve,
        });
        this.#draw();
        this.#lookSoon(reject);
      });
    } finally {
      this.#isOver = true;
      clearTimeout(this.#timer);
      close();
    }
  }

  #lookSoon(onBug: (error: unknown) => void): void {
    this.#timer = setTimeout(() => {
      this.#look().then(() => {
        if (!this.#isOver) this.#lookSoon(onBug);
      }, onBug);
    }, LOOK_MS);
  }

  async #look(): Promise<void> {
    try {
      const last = this.#status?.history.last ?? 0;
      this.#status = await askStatus(this.#places, last - COURSE_SECONDS);
      this.#trouble = undefined;
    } catch (error) {
      if (!(error instanceof UnreachableError)) throw error;
      this.#trouble = error.message;
    }
    if (!this.#isOver) this.#draw();
  }

  #draw(): void {
    if (this.#status === undefined) return;
    const size = sizeOf(this.#terminal, this.#env);
    const hasColours = mayColour(this.#env);
    const lines = topScreen(this.#status, size, this.#trouble).map(
      (line) => painted(line, size.columns, hasColours) + CLEAR_LINE,
    );
    // No line feed after the last line: it would scroll the first one away.
    this.#terminal.write(`${HOME}${lines.join("\r\n")}${CLEAR_BELOW}`);
  }
}

function sizeOf(terminal: Terminal | undefined, env: Io["env"]): ScreenSize {
  const { LC_ALL, LC_CTYPE, LANG } = env;
  return {
    columns: terminal?.columns ?? COLUMNS_UNKNOWN,
    rows: terminal?.rows ?? Number.POSITIVE_INFINITY,
    isUnicode: /utf-?8/i.test(LC_ALL || LC_CTYPE || LANG || ""),
  };
}

/** See no-color.org. */
function mayColour({ NO_COLOR = "" }: Io["env"]): boolean {
  return NO_COLOR === "";
}
