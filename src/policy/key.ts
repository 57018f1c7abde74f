/**
 * From the parts that a policy names to one key, so that different identities never meet.
 *
 * A single text is its own key, byte for byte: the key that a caller of `/v1/check` would send, and
 * the one that `overrides` name. Everything else is written in a marked form, and a text that looks
 * like a marked form is marked itself; so no text that a client sends can be taken for an address,
 * a list or an absent part.
 *
 * | key | of what |
 * |---|---|
 * | `alice` | a text |
 * | `text:list:1` | a text that is empty or begins like one of the others |
 * | `bytes:c3ff` | bytes that are not UTF-8, in hex |
 * | `address:192.0.2.7`, `address:2001:db8::/64` | a client address |
 * | `absent:` | the request does not have the part |
 * | `repeated:` | the request has the part more than once, with different values |
 * | `list:5:alice,@9:192.0.2.7,-` | several parts, each with its length |
 * | `digest:9f86…` | SHA-256, hex, of a key that would be longer than 256 bytes |
 */
import { isUtf8 } from "node:buffer";
import { createHash } from "node:crypto";

/** Longest key in bytes of UTF-8; longer ones are told apart by their digest. */
export const KEY_BYTES_MAX = 256;

export type Part =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "bytes"; readonly hex: string }
  | { readonly kind: "address"; readonly text: string }
  | { readonly kind: "absent" }
  | { readonly kind: "repeated" };

export const ABSENT: Part = { kind: "absent" };
export const REPEATED: Part = { kind: "repeated" };

const LOOKS_MARKED = /^(text|bytes|address|absent|repeated|list|digest):/;

/** Reads a byte string: as UTF-8 where it is, else as the bytes that they are. */
export function partOf(bytes: string): Part {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are ASCII like the rest.
  if (/^[\x00-\x7f]*$/.test(bytes)) return { kind: "text", text: bytes };
  const buffer = Buffer.from(bytes, "latin1");
  return isUtf8(buffer)
    ? { kind: "text", text: buffer.toString("utf8") }
    : { kind: "bytes", hex: buffer.toString("hex") };
}

/** @param parts - One, or several to be joined; at least one. */
export function keyOf(parts: readonly Part[]): string {
  const [only] = parts;
  const key = only !== undefined && parts.length === 1 ? single(only) : joined(parts);
  if (key.length * 3 <= KEY_BYTES_MAX || Buffer.byteLength(key) <= KEY_BYTES_MAX) return key;
  return `digest:${createHash("sha256").update(key).digest("hex")}`;
}

function single(part: Part): string {
  switch (part.kind) {
    case "text":
      return part.text === "" || LOOKS_MARKED.test(part.text) ? `text:${part.text}` : part.text;
    case "bytes":
      return `bytes:${part.hex}`;
    case "address":
      return `address:${part.text}`;
    default:
      return `${part.kind}:`;
  }
}

function joined(parts: readonly Part[]): string {
  return `list:${parts.map(item).join(",")}`;
}

/** Lengths are in UTF-16 code units: any unit would do that tells where a part ends. */
function item(part: Part): string {
  switch (part.kind) {
    case "text":
      return `${part.text.length}:${part.text}`;
    case "bytes":
      return `%${part.hex.length}:${part.hex}`;
    case "address":
      return `@${part.text.length}:${part.text}`;
    case "absent":
      return "-";
    case "repeated":
      return "+";
  }
}
