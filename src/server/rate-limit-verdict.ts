/** What the places of one call come to together. */
import type { Place } from "./rate-limit-status.ts";

/**
 * Whether the call is denied, by what is known so far. One rule that denies is enough, except that
 * those in `quota_mode` deny only when all of them do.
 */
export function isDenied(places: readonly Place[]): boolean {
  let isMet = false;
  let isEvery = true;
  for (const place of places) {
    const { rule } = place;
    if (rule === undefined || place.isReplaced) continue;
    if (rule.deniesAlone) {
      if (isDenying(place)) return true;
    } else {
      isMet = true;
      if (!isDenying(place)) isEvery = false;
    }
  }
  return isMet && isEvery;
}

/** The rule stands against the call. */
export function isDenying(place: Place): boolean {
  const { rule, isReplaced, decision } = place;
  if (rule === undefined || isReplaced) return false;
  if (rule.kind === "blocked") return !rule.shadow;
  return decision !== undefined && !decision.allowed;
}

export function isPassing({ decision }: Place): boolean {
  return decision?.allowed === true;
}

/** The limit is closed while the store is away; a store that is only late is a denial. */
export function isUndecided({ decision }: Place): boolean {
  return decision?.reason === "store_unavailable";
}

/** Rules that another rule of the same call replaces are as if they were not there. */
export function dropReplaced(places: Place[]): void {
  if (!places.some(isReplacing)) return;
  const replaced = places.flatMap(({ rule }) => rule?.replaces ?? []);
  for (const place of places) {
    if (place.rule?.label === undefined || !replaced.includes(place.rule.label)) continue;
    place.isReplaced = true;
    place.check = undefined;
  }
}

function isReplacing({ rule }: Place): boolean {
  return rule !== undefined && rule.replaces.length > 0;
}
