/**
 * Taking a path for a Unix socket, whatever the last process left there.
 *
 * The server binds to a temporary name beside the path; the socket gets its mode and is renamed
 * over the path. So a client never sees a socket with the wrong mode, and a stale one is replaced
 * without a moment in which there is none. What is not a stale socket is never touched. Two
 * processes that start in the same instant on one stale socket can still both succeed, the later
 * one keeping the name: a lock file would close that gap and leave a second kind of stale file
 * behind.
 */
import { randomBytes } from "node:crypto";
import { chmodSync, lstatSync, mkdirSync, renameSync, type Stats, unlinkSync } from "node:fs";
import { connect } from "node:net";
import { basename, dirname, join } from "node:path";
import { errorCode, ListenError } from "./listen-error.ts";

/** `sun_path` of Linux holds 108 bytes, the last one 0. */
export const SOCKET_PATH_BYTES_MAX = 107;

/** A local process that takes longer to accept a connection is alive, however slow. */
const PROBE_TIMEOUT_MS = 1_000;

const BIND_ATTEMPTS_MAX = 8;

export interface SocketClaim {
  readonly path: string;
  /**
   * Removes the socket if it is still the one that was bound. To be called before the server
   * closes: until then the inode cannot be given to another file.
   */
  release(): void;
  /**
   * Puts a socket in its place that was bound anew under the temporary name; nothing happens when
   * there is none.
   *
   * @throws {ListenError} When another process has taken the path meanwhile.
   */
  renew(): void;
}

/**
 * Binds a Unix socket to `path`.
 *
 * @param mode - File mode of the socket, e.g. 0o660.
 * @param bind - Starts a server on the temporary path that it is given; rejects when it cannot.
 * @throws {ListenError} When the path is unusable or in use. The caller closes its server then.
 */
export async function claimUnixSocket(
  path: string,
  mode: number,
  bind: (temporaryPath: string) => Promise<void>,
): Promise<SocketClaim> {
  requireUsablePath(path);
  createParent(path);
  const stale = await findStaleSocket(path);
  const temporaryPath = await bindBeside(path, bind);
  let bound = putInPlace(temporaryPath, { path, mode, stale });
  return {
    path,
    release: () => removeIfSame(path, bound),
    renew: () => {
      if (statOf(temporaryPath) === undefined) return;
      bound = putInPlace(temporaryPath, { path, mode, stale: bound });
    },
  };
}

interface Place {
  readonly path: string;
  readonly mode: number;
  /** What may be replaced. */
  readonly stale: Stats | undefined;
}

/** Gives the socket its mode and its name, and returns what now stands there. */
function putInPlace(temporaryPath: string, { path, mode, stale }: Place): Stats {
  try {
    chmodSync(temporaryPath, mode);
    const bound = lstatSync(temporaryPath);
    // Nothing can come between these two calls but another process, within microseconds.
    const present = statOf(path);
    if (present !== undefined && !isSame(present, stale)) {
      throw new ListenError(`another process has just taken the socket ${path}`);
    }
    renameSync(temporaryPath, path);
    return bound;
  } catch (error) {
    removeQuietly(temporaryPath);
    throw asListenError(error, path);
  }
}

function requireUsablePath(path: string): void {
  const bytes = Buffer.byteLength(path);
  if (bytes > SOCKET_PATH_BYTES_MAX) {
    throw new ListenError(
      `the socket path ${path} has ${bytes} bytes; a Unix socket takes at most ` +
        `${SOCKET_PATH_BYTES_MAX}`,
    );
  }
  if (bytes === 0 || path.includes("\0") || path.endsWith("/")) {
    throw new ListenError(`${JSON.stringify(path)} is not the path of a socket`);
  }
}

function createParent(path: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true });
  } catch (error) {
    throw asListenError(error, path);
  }
}

/** The stale socket at the path, or undefined when nothing is there; throws for anything else. */
async function findStaleSocket(path: string): Promise<Stats | undefined> {
  const found = statOf(path);
  if (found === undefined) return undefined;
  if (!found.isSocket()) {
    throw new ListenError(`${path} is ${kindOf(found)}, not a socket; it was left as it is`);
  }
  const answer = await probe(path);
  if (answer === "ENOENT") return undefined;
  if (answer === "ECONNREFUSED") return found;
  throw new ListenError(
    answer === "connected"
      ? `another process answers on the socket ${path}; it was left as it is`
      : `cannot tell whether a process answers on the socket ${path} (${answer}); ` +
          "it was left as it is",
  );
}

/** Tries to connect: `connected`, or why not. */
function probe(path: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    const settle = (answer: string): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(PROBE_TIMEOUT_MS, () => settle("ETIMEDOUT"));
    socket.once("connect", () => settle("connected"));
    socket.once("error", (error) => settle(errorCode(error) ?? error.message));
  });
}

/** Binds to a fresh name in the directory of `path` and returns that name. */
async function bindBeside(
  path: string,
  bind: (temporaryPath: string) => Promise<void>,
): Promise<string> {
  for (let attempt = 1; ; attempt += 1) {
    const temporaryPath = join(dirname(path), temporaryName(path));
    try {
      if (statOf(temporaryPath) !== undefined) throw new ListenError(`${temporaryPath} exists`);
      await bind(temporaryPath);
      return temporaryPath;
    } catch (error) {
      const taken = errorCode(error) === "EADDRINUSE" || statOf(temporaryPath) !== undefined;
      if (!taken || attempt === BIND_ATTEMPTS_MAX) throw asListenError(error, path);
    }
  }
}

/**
 * Not longer than the name it stands for where that would pass the limit of a socket path. Without
 * digits: `.1e5`, when it happens to be relative, is a port to Node.
 */
function temporaryName(path: string): string {
  const random = randomBytes(8)
    .toString("hex")
    .replace(/\d/g, (digit) => String.fromCharCode("g".charCodeAt(0) + Number(digit)));
  const spare = SOCKET_PATH_BYTES_MAX - Buffer.byteLength(path);
  const length = Math.min(9, Buffer.byteLength(basename(path)) + spare);
  return length < 2 ? random.slice(0, 1) : `.${random.slice(0, length - 1)}`;
}

function statOf(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false });
}

/** The kind counts too: the number of a socket that is gone may be given to another file. */
function isSame(a: Stats | undefined, b: Stats | undefined): boolean {
  return a?.ino === b?.ino && a?.dev === b?.dev && a?.isSocket() === b?.isSocket();
}

function removeIfSame(path: string, bound: Stats): void {
  if (isSame(statOf(path), bound)) removeQuietly(path);
}

/** A socket that is gone already, or whose directory is, needs no removing. */
function removeQuietly(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (errorCode(error) === undefined) throw error;
  }
}

function kindOf(stats: Stats): string {
  if (stats.isDirectory()) return "a directory";
  if (stats.isSymbolicLink()) return "a symbolic link";
  return stats.isFile() ? "a regular file" : "a special file";
}

function asListenError(error: unknown, path: string): ListenError {
  if (error instanceof ListenError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new ListenError(`cannot listen on the socket ${path}: ${message}`, { cause: error });
}
