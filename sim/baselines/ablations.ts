/**
 * Our own rule with one part taken out, to see what the part is for.
 *
 * The production code has no switches for this. Each ablation runs the shipped engine against the
 * shipped embedded store and changes numbers on their way between the two, or in the stored value:
 *
 * - no ledger: the stored count of handed-out stock is set to zero before each batch;
 * - no reserve: the stored consumption is set to zero before each batch, so that only the batch's
 *   own is left of it (a hundredth of the reserve under even load);
 * - another prior: demands travel multiplied, which makes the prior weigh that much less; shares
 *   are ratios of demands, so nothing else changes;
 * - fixed gain: the target of the reply is computed anew from the reply's own share and level.
 */
import {
  type Batch,
  type BatchReply,
  ENTRY,
  ENTRY_FIELDS,
  REPLY,
  REPLY_FIELDS,
} from "../../src/core/exchange.ts";
import { EmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import { aliquotScheme } from "../aliquot-scheme.ts";
import { type AliquotStore, embeddedBackend, type StoreBackend } from "../aliquot-store.ts";
import type { Scheme } from "../scheme.ts";

/** Places in the stored value: decayed consumption, and the two slots of the ledger. */
const STORED = { consumed: 6, ledgerNow: 8, ledgerPast: 9 } as const;

/** What an ablation changes; all of it is optional. */
interface Change {
  /** Stored numbers that are zeroed before each batch. */
  readonly forget?: readonly number[];
  /** Demands are multiplied by this on their way to the store. */
  readonly demandTimes?: number;
  /**
   * Part of the others' share of the stock that a pod may take per reconcile; 1/e at most in truth.
   */
  readonly gain?: number;
}

function ablation(name: string, rule: string, change: Change): Scheme<AliquotStore> {
  return aliquotScheme({ name, rule, backend: () => changedBackend(change) });
}

function changedBackend(change: Change): StoreBackend {
  const store = new EmbeddedStore();
  const backend = embeddedBackend(store);
  const stored = (batch: Batch, i: number): Float64Array | undefined =>
    store.keyValue(batch.limits[i]?.name ?? "", batch.keys[i] ?? "");
  return {
    ...backend,
    reconcile(nowUs, podRecordId, batch): BatchReply {
      for (let i = 0; i < batch.keys.length; i += 1) {
        const value = stored(batch, i);
        for (const place of change.forget ?? []) if (value !== undefined) value[place] = 0;
      }
      const times = change.demandTimes ?? 1;
      const reply = store.reconcile(nowUs, podRecordId, scaleDemand(batch, times));
      for (let i = 0; i < batch.keys.length; i += 1) {
        const at = i * REPLY_FIELDS;
        reply.entries[at + REPLY.ownDemand] = (reply.entries[at + REPLY.ownDemand] ?? 0) / times;
        const value = stored(batch, i);
        if (change.gain !== undefined && value !== undefined && !reply.duplicate) {
          regrant(change.gain, batch, reply, i, value);
        }
      }
      return reply;
    },
  };
}

function scaleDemand(batch: Batch, times: number): Batch {
  if (times === 1) return batch;
  const entries = batch.entries.slice();
  for (let at = 0; at < entries.length; at += ENTRY_FIELDS) {
    entries[at + ENTRY.demand] = (entries[at + ENTRY.demand] ?? 0) * times;
    entries[at + ENTRY.ownDemand] = (entries[at + ENTRY.ownDemand] ?? 0) * times;
  }
  return { ...batch, entries };
}

/** The store's rule for stock with another gain; the ledger follows what is granted. */
function regrant(
  gain: number,
  batch: Batch,
  reply: BatchReply,
  i: number,
  value: Float64Array,
): void {
  const entry = batch.entries.subarray(i * ENTRY_FIELDS, (i + 1) * ENTRY_FIELDS);
  const out = reply.entries.subarray(i * REPLY_FIELDS, (i + 1) * REPLY_FIELDS);
  const [share = 0, available = 0] = [out[REPLY.share], out[REPLY.available]];
  const held = entry[ENTRY.held] ?? 0;
  const granted = out[REPLY.granted] ?? 0;
  const isIdle = (entry[ENTRY.demand] ?? 0) === 0;
  // A cost that flow and stock cannot cover is granted outside the gain; leave that as it is.
  if (isIdle || (entry[ENTRY.want] ?? 0) > 0) return;
  const target = Math.floor(share * (share + (1 - share) * gain) * Math.max(0, available));
  const ledger = (value[STORED.ledgerNow] ?? 0) - granted;
  const room = Math.floor(available - ledger - (value[STORED.ledgerPast] ?? 0));
  const top = Math.max(0, Math.min(target - held, room));
  value[STORED.ledgerNow] = ledger + top;
  out[REPLY.target] = target;
  out[REPLY.granted] = top;
}

const LEDGER = [STORED.ledgerNow, STORED.ledgerPast];
const RESERVE = [STORED.consumed];
/** Demands so large that the prior is nothing beside them. */
const NO_PRIOR = 1e6;

export const ABLATIONS: readonly Scheme<AliquotStore>[] = [
  ablation("aliquot-no-ledger", "hybrid mode without the ledger", { forget: LEDGER }),
  ablation("aliquot-no-reserve", "hybrid mode without the reserve", { forget: RESERVE }),
  ablation("aliquot-no-prior", "hybrid mode without the prior", { demandTimes: NO_PRIOR }),
  ablation("aliquot-prior-3x", "hybrid mode with three times the prior", { demandTimes: 1 / 3 }),
  ablation("aliquot-no-prior-no-ledger", "hybrid mode without prior and ledger", {
    demandTimes: NO_PRIOR,
    forget: LEDGER,
  }),
  ablation("aliquot-gain-0.7", "hybrid mode with a fixed gain of 0.7", { gain: 0.7 }),
  ablation("aliquot-gain-1-bare", "a fixed gain of 1, no ledger and no reserve", {
    gain: 1,
    forget: [...LEDGER, ...RESERVE],
  }),
];
