/**
 * The kinds of values in a configuration file. Each is a text or a number as people write it on one
 * side, and a value in the core's units on the other; the title is the kind's name in the JSON
 * Schema and in the documentation, the message says what would be accepted.
 */
import * as z from "zod";
import type { DurationUs } from "../core/units.ts";
import { ADDRESS_PATTERN, type Address, parseAddress } from "./address.ts";
import { DURATION_PATTERN, formatDuration, parseDuration } from "./duration.ts";
import { parseRate, RATE_FORM, type Rate } from "./rate.ts";

/** The sockaddr of a Unix socket holds 108 bytes, the last of them zero. */
const SOCKET_PATH_BYTES_MAX = 107;

const FILE_PATH_LENGTH_MAX = 4_096;

/** Longest key in bytes of UTF-8, the same as for a check. */
export const KEY_BYTES_MAX = 256;

type Refuse = (message: string) => never;

/** A text that `read` turns into a value; `read` refuses with a message. */
function textField<T>(
  title: string,
  pattern: RegExp,
  form: string,
  read: (text: string, refuse: Refuse) => T,
): z.ZodType<T, string> {
  return z
    .string({ error: form })
    .meta({ pattern: pattern.source })
    .transform((text, context): T => {
      const refuse = (message: string): never => {
        context.issues.push({ code: "custom", message, input: text });
        return z.NEVER;
      };
      return read(text, refuse);
    })
    .meta({ title });
}

export function durationField(least: DurationUs, most: DurationUs): z.ZodType<DurationUs, string> {
  const range = `${formatDuration(least)} to ${formatDuration(most)}`;
  const form = `must be a duration from ${range}, such as 100ms, 1s or 2m`;
  return textField(`duration, ${range}`, DURATION_PATTERN, form, (text, refuse) => {
    const us = parseDuration(text);
    return us === undefined || us < least || us > most ? refuse(form) : us;
  });
}

export function rateField(): z.ZodType<Rate, string> {
  // The pattern in the JSON Schema allows what the messages explain better than a pattern does.
  const pattern = /^[0-9]{1,15}\/[0-9]{0,9}(ms|s|m|h|d)$/;
  return textField("rate", pattern, RATE_FORM, (text, refuse) => {
    const rate = parseRate(text);
    return typeof rate === "string" ? refuse(rate) : rate;
  });
}

/** A listener that can be turned off; undefined is off. */
/** A list with a least and a most number of items. */
export function listenField(): z.ZodType<Address | undefined, string> {
  const form = "must be host:port, such as 127.0.0.1:8790, or off";
  const pattern = new RegExp(`^off$|${ADDRESS_PATTERN.source}`);
  return textField("host:port or off", pattern, form, (text, refuse) => {
    return text === "off" ? undefined : (parseAddress(text) ?? refuse(form));
  });
}

/** A socket path that can be turned off; undefined is off. */
export function socketField(): z.ZodType<string | undefined, string> {
  const form = `must be an absolute path of at most ${SOCKET_PATH_BYTES_MAX} bytes, or off`;
  return textField("path or off", /^off$|^\//, form, (text, refuse) => {
    if (text === "off") return undefined;
    const usable =
      /^\/[^\0]*[^/\0]$/.test(text) && Buffer.byteLength(text) <= SOCKET_PATH_BYTES_MAX;
    return usable ? text : refuse(form);
  });
}

/** A file that is read later; relative paths are resolved against the configuration file. */
export function filePathField(): z.ZodType<string, string> {
  const form = "must be the path of a file";
  return textField("path", /./, form, (text, refuse) => {
    const usable = text !== "" && !text.includes("\0") && text.length <= FILE_PATH_LENGTH_MAX;
    return usable ? text : refuse(form);
  });
}

export function socketModeField(): z.ZodType<number, string> {
  const form = 'must be three octal digits in quotes, such as "0660"';
  return textField("octal digits in quotes", /^0?[0-7]{3}$/, form, (text, refuse) => {
    return /^0?[0-7]{3}$/.test(text) ? Number.parseInt(text, 8) : refuse(form);
  });
}

export function patternField(
  title: string,
  pattern: RegExp,
  form: string,
): z.ZodType<string, string> {
  return textField(title, pattern, form, (text, refuse) => {
    return pattern.test(text) ? text : refuse(form);
  });
}

/** A Redis URL; what is in it is looked at where the whole `redis` section is known. */
export function redisUrlField(): z.ZodType<string, string> {
  const form = "must be a URL such as redis://redis:6379/0 or rediss://redis:6379/0";
  return patternField("redis:// or rediss:// URL", /^rediss?:\/\/\S+$/, form);
}

/** What a request is counted under: 1 to 256 bytes of UTF-8. */
export function keyField(): z.ZodType<string, string> {
  const form = `must be a text of 1 to ${KEY_BYTES_MAX} bytes; put numbers in quotes`;
  return textField("key", /./, form, (text, refuse) => {
    const bytes = Buffer.byteLength(text);
    return bytes >= 1 && bytes <= KEY_BYTES_MAX ? text : refuse(form);
  });
}

export function wholeNumberField(
  least: number,
  most: number = Number.MAX_SAFE_INTEGER,
): z.ZodType<number, number> {
  const unbounded = most === Number.MAX_SAFE_INTEGER;
  const range = unbounded ? `of at least ${least}` : `from ${least} to ${most}`;
  const error = `must be a whole number ${range}`;
  const title = `whole number, ${unbounded ? `at least ${least}` : `${least} to ${most}`}`;
  return z.int({ error }).min(least, { error }).max(most, { error }).meta({ title });
}

export function choiceField<const T extends readonly string[]>(
  names: T,
): z.ZodType<T[number], T[number]> {
  const error = `must be ${names.slice(0, -1).join(", ")} or ${names.at(-1)}`;
  return z.enum(names, { error }).meta({ title: names.join(" | ") }) as unknown as z.ZodType<
    T[number],
    T[number]
  >;
}

export function switchField(): z.ZodType<boolean, boolean> {
  return z.boolean({ error: "must be true or false" }).meta({ title: "true | false" });
}

/** A part of a whole, above 0 and at most 1. */
export function partField(): z.ZodType<number, number> {
  const error = "must be a number above 0 and at most 1";
  return z.number({ error }).gt(0, { error }).max(1, { error }).meta({ title: "number, 0 to 1" });
}

/** A strict map: names that are not in `shape` are problems. */
export function map<T extends z.ZodRawShape>(
  description: string,
  shape: T,
): z.ZodObject<T, z.core.$strict> {
  return z.strictObject(shape, { error: onNotMap(Object.keys(shape)) }).meta({ description });
}

function onNotMap(names: readonly string[]): (issue: { code?: string }) => string | undefined {
  const form = `must be a map with ${names.join(", ")}`;
  return (issue) => (issue.code === "invalid_type" ? form : undefined);
}

/** A list with a least and a most number of items. */
export function list<T extends z.ZodType>(item: T, least: number, most: number): z.ZodArray<T> {
  const error = `must be a list of ${least} to ${most} items`;
  return z.array(item, { error }).min(least, { error }).max(most, { error });
}
