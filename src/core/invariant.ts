/** Thrown when something that cannot be is so: a bug here, never a bad request. */
export class InvariantError extends Error {
  override readonly name = "InvariantError";
}

/** @throws {InvariantError} When the condition does not hold. */
export function invariant(condition: boolean, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}

/** For the end of an exhaustive switch. @throws {InvariantError} Always. */
export function unreachable(value: never): never {
  throw new InvariantError(`unexpected value: ${String(value)}`);
}
