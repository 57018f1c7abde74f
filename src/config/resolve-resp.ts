/** Puts the limit together that stands for all limits which callers bring with `CL.THROTTLE`. */
import { shapedLimit } from "../core/shaped-limits.ts";
import type { ListenConfig, RespConfig } from "./config.ts";
import type { FileResp } from "./file-shape.ts";
import type { Findings } from "./findings.ts";
import { type LimitDefaults, resolveTerms } from "./resolve-limits.ts";

/** Its `/` is in no name that a file may give to a limit. */
export const INLINE_LIMIT_NAME = "resp/inline";

/** @param listen - Undefined when that section is wrong: its own problems are enough. */
export function resolveResp(
  resp: FileResp,
  listen: ListenConfig | undefined,
  defaults: LimitDefaults,
  findings: Findings,
): RespConfig {
  const { inline_limits: isAllowed, max_inline_limits: inlineLimitsMax } = resp;
  const hasListener =
    listen === undefined || listen.resp.socket !== undefined || listen.resp.tcp !== undefined;
  if (isAllowed && !hasListener) {
    findings.add(["resp", "inline_limits"], "needs a listener; give listen.resp.socket a path");
  }
  if (!isAllowed) return { inlineLimit: undefined, inlineLimitsMax };
  const inlineLimit = shapedLimit({ ...resolveTerms({}, defaults), name: INLINE_LIMIT_NAME });
  return { inlineLimit, inlineLimitsMax };
}
