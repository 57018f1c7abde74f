/**
 * Names of the limits that come from files of rules: `envoy/<domain>/<key>=<value>/...`.
 *
 * Each part keeps letters, digits, `_`, `.` and `-`; everything else is percent-encoded. So no two
 * rules meet in one name (key `y_z` of domain `x`, and key `z` of domain `x_y`), and a name is safe
 * wherever it goes: in labels, headers, addresses and keys of Redis. A `*` in a value stays.
 */
import { hash } from "node:crypto";

const PREFIX = "envoy";

/** What callers limit themselves; `@` is in no part of another name. */
const OVERRIDE = "@override";

/** Longest name; a longer one ends in `~` and 128 bits of its SHA-256. */
const NAME_LENGTH_MAX = 200;
const DIGEST_DIGITS = 22;

/** @param steps - Keys and values from the domain's root to the rule. */
export function ruleName(
  domain: string,
  steps: readonly { readonly key: string; readonly value: string | undefined }[],
): string {
  const parts = steps.map(({ key, value }) => {
    const escaped = escapePart(key);
    return value === undefined
      ? escaped
      : `${escaped}=${value.split("*").map(escapePart).join("*")}`;
  });
  return bounded([PREFIX, escapePart(domain), ...parts].join("/"));
}

export function overrideName(domain: string): string {
  return bounded(`${PREFIX}/${escapePart(domain)}/${OVERRIDE}`);
}

function escapePart(text: string): string {
  return text.replace(/[^A-Za-z0-9_.-]/gu, (character) =>
    [...Buffer.from(character)]
      .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`)
      .join(""),
  );
}

function bounded(name: string): string {
  if (name.length <= NAME_LENGTH_MAX) return name;
  const digest = hash("sha256", name, "base64url").slice(0, DIGEST_DIGITS);
  return `${name.slice(0, NAME_LENGTH_MAX - DIGEST_DIGITS - 1)}~${digest}`;
}
