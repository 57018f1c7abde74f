/** Sources of keys as they are written in a file: `header:x-api-key`, `client-address`. */
import type { KeySource } from "../ports/policy.ts";
import { didYouMean } from "./closest.ts";
import { KEY_BYTES_MAX } from "./fields.ts";

const NAME_LENGTH_MAX = 128;
const KINDS = ["header", "path", "query", "cookie", "const"];
const FORM =
  "must be header:NAME, path:NAME, query:NAME, cookie:NAME, client-address or const:VALUE";

/** Names of headers and cookies (RFC 9110, 5.6.2). */
const TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;

/** @returns The source, or what is wrong with it. */
export function parseKeySource(text: string): KeySource | string {
  if (text === "client-address") return { kind: "client-address" };
  const colon = text.indexOf(":");
  const kind = colon < 0 ? text : text.slice(0, colon);
  const name = text.slice(colon + 1);
  if (colon < 0 || !KINDS.includes(kind)) {
    return `${FORM}${didYouMean(kind, [...KINDS, "client-address"])}`;
  }
  if (kind === "const") {
    const bytes = Buffer.byteLength(name);
    if (bytes >= 1 && bytes <= KEY_BYTES_MAX) return { kind, value: name };
    return `must have 1 to ${KEY_BYTES_MAX} bytes after const:`;
  }
  if (name === "" || name.length > NAME_LENGTH_MAX) {
    return `must have a name of 1 to ${NAME_LENGTH_MAX} characters after ${kind}:`;
  }
  if (kind === "query" || kind === "path") return { kind, name };
  if (!TOKEN.test(name)) return `is not a name that a ${kind} can have`;
  if (kind === "cookie") return { kind, name };
  const lower = name.toLowerCase();
  return lower === "x-forwarded-for"
    ? "would be a text that clients write; use client-address"
    : { kind: "header", name: lower };
}

export function formatKeySource(source: KeySource): string {
  switch (source.kind) {
    case "client-address":
      return source.kind;
    case "const":
      return `const:${source.value}`;
    default:
      return `${source.kind}:${source.name}`;
  }
}
