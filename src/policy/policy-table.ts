/**
 * The policies in force: which of them a request falls under, and with which keys.
 *
 * A policy that is chosen by name applies whatever it matches. That choice was made in the proxy's
 * configuration, and what a client writes into its path must not undo it; the patterns of such a
 * policy only say where its `:name` segments are.
 */
import type {
  NamedCheck,
  OriginalRequest,
  PathPattern,
  Policies,
  Policy,
  PolicyCheck,
} from "../ports/policy.ts";
import { keyOf } from "./key.ts";
import { type PartContext, takePart } from "./key-parts.ts";
import { matchPath, type Params } from "./path-pattern.ts";
import { readingsOf, type Segments } from "./path-readings.ts";

/** A policy with the values of its named segments. */
interface Selected {
  readonly policy: Policy;
  readonly params: Params;
}

const NO_PARAMS: Params = new Map();

export class PolicyTable implements Policies {
  /** Requests that no policy matched. */
  unmatched = 0;
  #policies: readonly Policy[] = [];
  #byName: ReadonlyMap<string, Policy> = new Map();

  constructor(policies: readonly Policy[]) {
    this.configChanged(policies);
  }

  get names(): readonly string[] {
    return [...this.#byName.keys()];
  }

  /** Puts other policies in force; their limits must be in force by the next request. */
  configChanged(policies: readonly Policy[]): void {
    this.#policies = policies;
    this.#byName = new Map(policies.map((policy) => [policy.name, policy]));
  }

  named(name: string, request: OriginalRequest): readonly NamedCheck[] | undefined {
    const policy = this.#byName.get(name);
    if (policy === undefined) return undefined;
    const { path, query } = splitTarget(request.target);
    const selected = usesPath(policy)
      ? readingsOf(path).flatMap((segments): Selected[] => {
          const params = paramsOf(policy.paths ?? [], segments);
          return params === undefined ? [] : [{ policy, params }];
        })
      : [];
    if (selected.length === 0) selected.push({ policy, params: NO_PARAMS });
    return checksOf(selected, request, query);
  }

  matching(request: OriginalRequest): readonly NamedCheck[] {
    const { path, query } = splitTarget(request.target);
    const selected = readingsOf(path).flatMap((segments) => this.#select(request.method, segments));
    if (selected.length === 0) this.unmatched += 1;
    return checksOf(selected, request, query);
  }

  #select(method: string, segments: Segments): Selected[] {
    for (const policy of this.#policies) {
      if (policy.methods !== undefined && !policy.methods.has(method)) continue;
      const params = policy.paths === undefined ? NO_PARAMS : paramsOf(policy.paths, segments);
      if (params !== undefined) return [{ policy, params }];
    }
    return [];
  }
}

/** The target may be in absolute form, and may hold a fragment although it should not. */
function splitTarget(target: string): { path: string; query: string } {
  const local = target.startsWith("/") ? target : target.replace(/^[a-z][\w+.-]*:\/\/[^/?#]*/i, "");
  const [whole = ""] = local.split("#", 1);
  const mark = whole.indexOf("?");
  return mark < 0
    ? { path: whole, query: "" }
    : { path: whole.slice(0, mark), query: whole.slice(mark + 1) };
}

function paramsOf(patterns: readonly PathPattern[], segments: Segments): Params | undefined {
  for (const pattern of patterns) {
    const params = matchPath(pattern, segments);
    if (params !== undefined) return params;
  }
  return undefined;
}

function usesPath(policy: Policy): boolean {
  return policy.checks.some(({ key }) => key.some(({ kind }) => kind === "path"));
}

/** One request is charged once per limit and key, however many readings lead there. */
function checksOf(
  selected: readonly Selected[],
  request: OriginalRequest,
  query: string,
): readonly NamedCheck[] {
  const checks: NamedCheck[] = [];
  for (const { policy, params } of selected) {
    const context = { request, query, params, policy };
    for (const check of policy.checks) addOnce(checks, checkOf(check, context));
  }
  return checks;
}

function checkOf({ limit, key, cost }: PolicyCheck, context: PartContext): NamedCheck {
  return { limit, key: keyOf(key.map((source) => takePart(source, context))), cost };
}

function addOnce(checks: NamedCheck[], added: NamedCheck): void {
  const same = checks.findIndex(({ limit, key }) => limit === added.limit && key === added.key);
  if (same < 0) checks.push(added);
  else if ((checks[same]?.cost ?? 0) < added.cost) checks[same] = added;
}
