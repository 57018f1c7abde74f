/** `aliquot wait`: returns when the sidecar is ready, for start scripts of the app beside it. */
import { setTimeout as sleep } from "node:timers/promises";
import { parseDuration } from "../config/duration.ts";
import { US_PER_MS } from "../core/units.ts";
import { CONFIG_OPTION, settingOptions } from "./configuration.ts";
import { ask, opsPlace, UnreachableError } from "./sidecar.ts";
import { EXIT, UsageError, type Verb } from "./verb.ts";

const TIMEOUT = "60s";

const POLL_MS = 100;

export const wait: Verb = {
  name: "wait",
  summary: "Wait until the sidecar is ready; exit 4 when nobody answers, 1 when it is not ready.",
  operands: "",
  operandCount: [0, 0],
  options: [
    { name: "timeout", value: "DURATION", help: `give up after this; ${TIMEOUT} when left out` },
    CONFIG_OPTION,
    ...settingOptions("ops"),
  ],
  examples: [
    ["aliquot wait && exec ./app", "start the app when limits are kept"],
    ["aliquot wait --timeout 5s", "or say that they are not"],
  ],
  async run({ flags }, io) {
    const text = flags.get("timeout") ?? TIMEOUT;
    const timeoutUs = parseDuration(text);
    if (timeoutUs === undefined) {
      throw new UsageError(`--timeout must be a duration such as 500ms, 10s or 2m; got ${text}`);
    }
    const places = await opsPlace(flags, io);
    const endMs = performance.now() + timeoutUs / US_PER_MS;
    for (;;) {
      const left = await readiness(places);
      if (left === undefined) return EXIT.ok;
      if (performance.now() + POLL_MS > endMs) {
        io.stderr(`aliquot wait: not ready after ${text}; ${left.why}\n`);
        return left.answered ? EXIT.failure : EXIT.unreachable;
      }
      await sleep(POLL_MS);
    }
  },
};

/** Undefined when ready, else why not. */
async function readiness(
  places: Parameters<typeof ask>[0],
): Promise<{ readonly answered: boolean; readonly why: string } | undefined> {
  try {
    const { status, body } = await ask(places, { method: "GET", path: "/readyz" });
    if (status === 200) return undefined;
    const told = JSON.stringify(body.trim().slice(0, 200));
    return { answered: true, why: `the sidecar answers ${status} ${told}` };
  } catch (error) {
    if (!(error instanceof UnreachableError)) throw error;
    return { answered: false, why: error.message };
  }
}
