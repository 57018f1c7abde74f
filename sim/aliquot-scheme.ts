/**
 * The engine of this project as a scheme: the very `PodLimiter` that runs in a pod, against the
 * very rules of the embedded store.
 */
import { AliquotNode, type NodeParts } from "./aliquot-node.ts";
import { AliquotStore, embeddedBackend, type StoreBackend } from "./aliquot-store.ts";
import type { Scheme, SchemeRun, SchemeSetup } from "./scheme.ts";

/** Replaceable parts; the defaults are the product. */
export interface AliquotParts extends NodeParts {
  readonly name?: string;
  readonly rule?: string;
  /** A fresh store for each run. */
  readonly backend?: () => StoreBackend | Promise<StoreBackend>;
}

export function aliquotScheme(parts: AliquotParts = {}): Scheme<AliquotStore> {
  return {
    name: parts.name ?? "aliquot",
    rule: parts.rule ?? "flow by demand share with a prior, burst through a ledger (hybrid mode)",
    source: "src/core, src/store/embedded",
    async start(setup: SchemeSetup): Promise<SchemeRun<AliquotStore>> {
      const backend = await (parts.backend ?? embeddedBackend)();
      const store = new AliquotStore(backend, setup);
      return {
        store,
        node: (context) => new AliquotNode(context, store, setup, parts),
        inspect: () => store.figures(),
        ...(backend.close === undefined ? {} : { close: () => backend.close?.() ?? nothing() }),
      };
    },
  };
}

async function nothing(): Promise<void> {}
