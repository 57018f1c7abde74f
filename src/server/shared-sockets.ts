/**
 * Unix sockets that several processes serve.
 *
 * This process claims the paths once. The sockets themselves come to be, under temporary names,
 * when the first of the others wants to listen; when all of them are gone the sockets go with them,
 * and the next one binds them anew.
 */
import { claimUnixSocket, type SocketClaim } from "./unix-socket.ts";

export class SharedSockets {
  readonly #boundAs = new Map<string, string>();
  readonly #waiting = new Map<string, () => void>();
  readonly #claims = new Map<string, SocketClaim>();
  #inPlace: Promise<unknown> = Promise.resolve();
  #isReleased = false;

  /** The temporary names, by path. */
  get boundAs(): ReadonlyMap<string, string> {
    return this.#boundAs;
  }

  /** Resolves when every socket stands at its path. @throws {ListenError} When one cannot. */
  get inPlace(): Promise<unknown> {
    return this.#inPlace;
  }

  /**
   * Resolves when the paths are free to be taken and `boundAs` is known.
   *
   * @throws {ListenError} When a path is unusable or in use.
   */
  async claim(paths: readonly string[], mode: number): Promise<void> {
    const named: Promise<unknown>[] = [];
    const placed: Promise<void>[] = [];
    for (const path of paths) {
      const whenNamed = new Promise<void>((resolve) => {
        placed.push(this.#claim(path, mode, resolve));
      });
      named.push(Promise.race([whenNamed, placed.at(-1)]));
    }
    this.#inPlace = Promise.all(placed);
    this.#inPlace.catch(() => {}); // told to whoever waits for it
    await Promise.all(named);
  }

  /** A socket has been bound under a name; other names are none of ours. */
  bound(name: string, onTrouble: (error: unknown) => void): void {
    this.#waiting.get(name)?.();
    this.#waiting.delete(name);
    // A process that comes too late must not put back what was removed.
    if (this.#isReleased) return;
    try {
      this.#claims.get(name)?.renew();
    } catch (error) {
      onTrouble(error);
    }
  }

  /** Removes the sockets that are still ours. */
  release(): void {
    this.#isReleased = true;
    for (const claim of this.#claims.values()) claim.release();
  }

  async #claim(path: string, mode: number, whenNamed: () => void): Promise<void> {
    let name = "";
    const claim = await claimUnixSocket(path, mode, (temporaryPath) => {
      name = temporaryPath;
      this.#boundAs.set(path, name);
      whenNamed();
      return new Promise((resolve) => this.#waiting.set(name, resolve));
    });
    this.#claims.set(name, claim);
    if (this.#isReleased) claim.release();
  }
}
