/** Stored values as text, to be compared to the last bit. */

/** Bytes of doubles as hexadecimal digits; none for nothing. */
export function bytesOf(numbers: Float64Array | undefined): string {
  return numbers === undefined
    ? ""
    : Buffer.from(Float64Array.from(numbers).buffer).toString("hex");
}

/** The same of what Redis told. */
export function hex(bytes: Buffer | null): string {
  return bytes === null ? "" : bytes.toString("hex");
}
