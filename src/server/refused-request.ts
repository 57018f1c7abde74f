/** Why a request got no decision: its own fault, or a store that must be asked and cannot be. */
export class RefusedRequest {
  readonly message: string;
  /** The limit that must ask its store and cannot; undefined when the request is at fault. */
  readonly closedLimit: string | undefined;

  constructor(message: string, closedLimit?: string) {
    this.message = message;
    this.closedLimit = closedLimit;
  }
}
