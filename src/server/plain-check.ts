/**
 * The shape in which nearly every check comes, read without building the JSON or the query first.
 *
 * Only what one expression covers completely is read here: the fields in the usual order, no
 * escapes, a key in printable ASCII. Everything else, all faults included, is left to the ordinary
 * way, which gives the same check for what is read here.
 */
import type { Check } from "../core/decision.ts";
import type { Decider } from "../ports/decider.ts";

/** With or without the space that some libraries put after a colon, a comma. */
const PLAIN_BODY =
  /^\{"limit": ?"([a-z0-9-]{1,63})", ?"key": ?"([ !#-[\]-~]{1,256})"(?:, ?"cost": ?(0|[1-9]\d{0,8}))?\}$/;

/** The same as an item of a batch, with what follows it. */
const PLAIN_ITEM =
  /\{"limit": ?"([a-z0-9-]{1,63})", ?"key": ?"([ !#-[\]-~]{1,256})"(?:, ?"cost": ?(0|[1-9]\d{0,8}))?\}(, ?|\]\})/y;
const PLAIN_BATCH_OPENS = /^\{"requests": ?\[/;

const PLAIN_TARGET =
  /^\/v1\/check\?limit=([a-z0-9-]{1,63})&key=([A-Za-z0-9_.:@~-]{1,256})(?:&cost=(0|[1-9]\d{0,8}))?$/;

/** No body of the plain shape is longer. */
const PLAIN_BYTES_MAX = 384;

/** The check in a body, or undefined when the body must be read the ordinary way. */
export function plainBody(bytes: Buffer, decider: Decider): Check | undefined {
  if (bytes.length > PLAIN_BYTES_MAX) return undefined;
  // Latin-1, so that whatever is not ASCII is still one unit per byte, and matches nothing.
  const text = bytes.toString("latin1");
  return checkOf(PLAIN_BODY.exec(text), decider);
}

/**
 * The checks of a batch, or undefined when it must be read the ordinary way.
 *
 * @param checksMax - Most checks of a batch.
 */
export function plainBatch(
  bytes: Buffer,
  checksMax: number,
  decider: Decider,
): readonly Check[] | undefined {
  const text = bytes.toString("latin1");
  const opening = PLAIN_BATCH_OPENS.exec(text);
  if (opening === null) return undefined;
  const checks: Check[] = [];
  PLAIN_ITEM.lastIndex = opening[0].length;
  while (checks.length < checksMax) {
    const match = PLAIN_ITEM.exec(text);
    const check = checkOf(match, decider);
    if (match === null || check === undefined) return undefined;
    checks.push(check);
    if (match[4] === "]}") return PLAIN_ITEM.lastIndex === text.length ? checks : undefined;
  }
  return undefined;
}

/** The check in a request target, or undefined when it must be read the ordinary way. */
export function plainTarget(target: string, decider: Decider): Check | undefined {
  return checkOf(PLAIN_TARGET.exec(target), decider);
}

function checkOf(match: RegExpExecArray | null, decider: Decider): Check | undefined {
  if (match === null) return undefined;
  const limit = decider.limit(match[1] as string);
  if (limit === undefined) return undefined;
  const cost = match[3];
  return { limit, key: ownCopy(match[2] as string), cost: cost === undefined ? 1 : Number(cost) };
}

/**
 * A part of a string keeps the whole one alive, and the engine keeps keys. Shorter parts are
 * copied by V8 itself.
 */
function ownCopy(part: string): string {
  return part.length < 13 ? part : Buffer.from(part, "latin1").toString("latin1");
}
