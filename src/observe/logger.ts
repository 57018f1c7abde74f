/**
 * The log: one JSON object a line on standard output.
 *
 * Whatever a caller or the store sent is in there as data. JSON escapes the control characters of
 * ASCII; those that follow it (DEL, C1) and the line separators of Unicode are escaped here,
 * because terminals and log collectors act on them too.
 */
import { destination, type LevelWithSilent, type Logger, pino, stdTimeFunctions } from "pino";

export type LogLevel = LevelWithSilent;

/** Levels from the most to the least talkative. */
export const LOG_LEVELS: readonly LogLevel[] = [
  "trace",
  "debug",
  "info",
  "warn",
  "error",
  "fatal",
  "silent",
];

export interface LoggerOptions {
  readonly level: LogLevel;
  /** Fields of every line, such as the pod's id. */
  readonly base?: Readonly<Record<string, string>>;
  /** Where lines go; standard output when left out. */
  readonly destination?: { write(line: string): void };
}

/** Fields that may hold a secret, wherever they stand in what is logged. */
const SECRETS = ["password", "url", "urls[*]", "authorization"];
const SECRET_PATHS = SECRETS.flatMap((name) => [name, `*.${name}`, `*.*.${name}`, `*.*.*.${name}`]);

/**
 * Makes the log.
 *
 * Passwords are left out, and URLs lose the user and password in them, down to four levels deep.
 */
export function createLogger(options: LoggerOptions): Logger {
  const out = options.destination ?? destination({ fd: 1, sync: true });
  return pino(
    {
      level: options.level,
      base: options.base ?? {},
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (level) => ({ level }) },
      redact: { paths: SECRET_PATHS, censor },
    },
    { write: (line: string) => void out.write(escapeControls(line)) },
  );
}

function censor(value: unknown, path: readonly string[]): unknown {
  const isUrl = path.some((part) => part === "url" || part === "urls");
  return isUrl && typeof value === "string" ? withoutUserInfo(value) : "[redacted]";
}

/** A URL without the user and password in it. */
function withoutUserInfo(url: string): string {
  return url.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/?#]*@/i, "$1[redacted]@");
}

function escapeControls(line: string): string {
  return line.replace(/[\u007f-\u009f\u2028\u2029]/g, escapeUnit);
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
