/** Lines of a stream whose pieces end anywhere: a watch sends one JSON value per line. */

/**
 * A slice of 1,000 endpoints is below 1 MB; something that ends no line must not fill the memory.
 */
export const LINE_LENGTH_MAX: number = 16 * 1_024 * 1_024;

export class WatchLines {
  private readonly lengthMax: number;
  private pieces: string[] = [];
  private length = 0;

  constructor(lengthMax: number = LINE_LENGTH_MAX) {
    this.lengthMax = lengthMax;
  }

  /** Something came that no line end has followed yet. */
  get isInside(): boolean {
    return this.length > 0;
  }

  /** Lines that the piece completes, without their ends. @throws {Error} When one is too long. */
  take(piece: string): string[] {
    const parts = piece.split("\n");
    const rest = parts.pop() ?? "";
    const lines = parts.map((part) => {
      this.keep(part);
      const line = this.pieces.join("");
      this.pieces = [];
      this.length = 0;
      return line;
    });
    if (rest !== "") this.keep(rest);
    return lines;
  }

  private keep(part: string): void {
    this.length += part.length;
    if (this.length > this.lengthMax) {
      throw new Error(`a line of the watch is longer than ${this.lengthMax} characters`);
    }
    this.pieces.push(part);
  }
}
