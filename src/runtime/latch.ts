/** Something that happens once: set from one place, asked or awaited from others. */
export class Latch {
  /** Resolves when the latch is set; never rejects. */
  readonly done: Promise<void>;
  private resolve: () => void = () => {};
  private happened = false;

  constructor() {
    this.done = new Promise((resolve) => {
      this.resolve = resolve;
    });
  }

  get isSet(): boolean {
    return this.happened;
  }

  /** Safe to call again. */
  set(): void {
    this.happened = true;
    this.resolve();
  }
}
