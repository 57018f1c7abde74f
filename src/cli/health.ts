/** `aliquot health`: a probe for places that can only run a command in the container. */
import { CONFIG_OPTION, settingOptions } from "./configuration.ts";
import { ask, opsPlace, UnreachableError } from "./sidecar.ts";
import { EXIT, UsageError, type Verb } from "./verb.ts";

const PROBES = ["livez", "readyz", "startupz"];

export const health: Verb = {
  name: "health",
  summary: "Probe the sidecar once; exit 0 when healthy, 1 when not.",
  operands: "",
  operandCount: [0, 0],
  options: [
    { name: "probe", value: "NAME", help: `${PROBES.join(", ")}; livez when left out` },
    CONFIG_OPTION,
    ...settingOptions("ops"),
  ],
  examples: [
    ["aliquot health", "HEALTHCHECK of an image, exec probe of a container"],
    ["aliquot health --probe readyz", "false while draining"],
  ],
  async run({ flags }, io) {
    const probe = flags.get("probe") ?? "livez";
    if (!PROBES.includes(probe)) {
      throw new UsageError(`--probe must be one of ${PROBES.join(", ")}; got ${probe}`);
    }
    const places = await opsPlace(flags, io);
    try {
      const { status } = await ask(places, { method: "GET", path: `/${probe}` });
      if (status === 200) return EXIT.ok;
      io.stderr(`aliquot health: /${probe} answers ${status}\n`);
    } catch (error) {
      if (!(error instanceof UnreachableError)) throw error;
      io.stderr(`aliquot health: ${error.message}\n`);
    }
    return EXIT.failure;
  },
};
