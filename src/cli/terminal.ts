/**
 * The terminal that a person sits at: its size, its keys, and a screen that is given back as it
 * was, however the program ends.
 */

/** What a full-screen verb sees of the terminal. */
export interface Terminal {
  readonly columns: number;
  readonly rows: number;
  /** Takes over the screen until the returned function is called; safe to call that twice. */
  open(listener: TerminalListener): () => void;
  write(text: string): void;
}

export interface TerminalListener {
  /** Bytes of keys, as the terminal sends them. */
  key(text: string): void;
  resized(): void;
  /** The terminal is gone, or somebody asked the process to end. */
  ended(): void;
}

/** Another screen, so that what was there comes back, and no cursor. */
const TAKE = "\x1b[?1049h\x1b[?25l";
const GIVE_BACK = "\x1b[?25h\x1b[?1049l";

/** Some terminals (a serial line, a pipe made into one) do not know their size, and say 0. */
const COLUMNS_UNKNOWN = 80;
const ROWS_UNKNOWN = 24;

const ENDING = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Undefined when the output goes elsewhere, or to a terminal that can do nothing. */
export function processTerminal(): Terminal | undefined {
  const { stdin, stdout } = process;
  const { TERM } = process.env;
  if (!stdout.isTTY || !stdin.isTTY || TERM === "dumb") return undefined;
  return {
    get columns() {
      return stdout.columns || COLUMNS_UNKNOWN;
    },
    get rows() {
      return stdout.rows || ROWS_UNKNOWN;
    },
    write: (text) => void stdout.write(text),
    open: ({ key, resized, ended }) => {
      const onData = (bytes: Buffer): void => key(bytes.toString("latin1"));
      let isOpen = true;
      const close = (): void => {
        if (!isOpen) return;
        isOpen = false;
        stdin.off("data", onData).off("end", ended).pause();
        stdout.off("resize", resized);
        for (const signal of ENDING) process.off(signal, ended);
        process.off("exit", close);
        stdin.setRawMode(false);
        stdout.write(GIVE_BACK);
      };
      stdin.setRawMode(true);
      stdin.on("data", onData).on("end", ended).resume();
      stdout.on("resize", resized);
      for (const signal of ENDING) process.on(signal, ended);
      process.on("exit", close);
      stdout.write(TAKE);
      return close;
    },
  };
}
