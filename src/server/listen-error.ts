/** A listener could not be opened, for a reason that the operator can do something about. */
export class ListenError extends Error {
  override readonly name = "ListenError";
}

/** The code of a system error, such as `EACCES`; undefined for any other error. */
export function errorCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
