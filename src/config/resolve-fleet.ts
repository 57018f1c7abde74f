/** Who this pod is and which fleet it belongs to. */
import type { Findings } from "./findings.ts";
import type { Environment, Flags } from "./settings.ts";

const POD_ID_VARIABLES = ["ALIQUOT_POD_ID", "POD_UID"];

export interface PodIdSources {
  readonly env: Environment;
  readonly flags: Flags;
  readonly hostname: string;
}

/** Two services that share a Redis by accident must not share limits as well. */
export function resolveFleet(
  fleet: string | undefined,
  embedded: boolean,
  findings: Findings,
): string | undefined {
  if (fleet !== undefined || findings.valueAt(["fleet"]) !== undefined) return fleet;
  if (embedded) return "local";
  findings.add(
    ["fleet"],
    "is missing; with redis, name the fleet whose pods share these limits, such as fleet: checkout",
  );
  return undefined;
}

/** The first that is given: flag, `ALIQUOT_POD_ID`, `POD_UID`, host name. */
export function resolvePodId(sources: PodIdSources, findings: Findings): string {
  const candidates = [
    ["flag --pod-id", sources.flags["pod-id"]],
    ...POD_ID_VARIABLES.map(
      (name) => [`environment variable ${name}`, sources.env[name] || undefined] as const,
    ),
    ["host name", sources.hostname],
  ] as const;
  const [source, given] = candidates.find(([, value]) => value !== undefined) ?? [];
  const id = String(given ?? "");
  if (!/^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/.test(id)) {
    const form = "must be 1 to 128 characters of A-Z, a-z, 0-9, '.', '_', ':' and '-'";
    findings.addForeign(source ?? "host name", "pod id", form, id);
  }
  return id;
}
