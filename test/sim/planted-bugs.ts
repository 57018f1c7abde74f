/**
 * Bugs planted from outside: each wraps the shipped store or the shipped engine so that it behaves
 * as if a rule had been forgotten. The production code has no switches for this.
 */

import type { Engine } from "../../sim/aliquot-node.ts";
import { type AliquotParts, aliquotScheme } from "../../sim/aliquot-scheme.ts";
import { embeddedBackend, type StoreBackend } from "../../sim/aliquot-store.ts";
import type { Scheme } from "../../sim/scheme.ts";
import type { Effect } from "../../src/core/effect.ts";
import { type Batch, ENTRY, ENTRY_FIELDS, REPLY, REPLY_FIELDS } from "../../src/core/exchange.ts";
import type { Limit } from "../../src/core/limit.ts";
import { PodLimiter, type PodLimiterOptions } from "../../src/core/pod-limiter.ts";
import { EmbeddedStore } from "../../src/store/embedded/embedded-store.ts";

/** The scheme with a bug in it. */
function buggy(name: string, parts: AliquotParts): Scheme {
  return aliquotScheme({ name, ...parts }) as Scheme;
}

type Reconcile = StoreBackend["reconcile"];

/** A store whose reconcile is wrapped. */
function buggyStore(
  wrap: (reconcile: Reconcile, store: EmbeddedStore) => Reconcile,
): () => StoreBackend {
  return () => {
    const store = new EmbeddedStore();
    const backend = embeddedBackend(store);
    return { ...backend, reconcile: wrap(backend.reconcile, store) };
  };
}

function buggyEngine(
  change: (engine: PodLimiter, options: PodLimiterOptions, now: number) => Partial<Engine>,
): NonNullable<AliquotParts["engine"]> {
  return (options, now) => {
    const engine = new PodLimiter(options, now);
    const changed = change(engine, options, now);
    // Getters and private fields stay with the engine; only what is changed is answered elsewhere.
    return new Proxy(engine, {
      get(target, name) {
        if (name in changed) return Reflect.get(changed, name);
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  };
}

/** Places in the stored value of a key. */
const STORED = { deficit: 3, ledgerNow: 8, ledgerPast: 9 } as const;
/** Places in the stored record of a lane. */
const LANE = { offset: 3, last: 4 } as const;

function withBatch(batch: Batch, change: Partial<Batch>): Batch {
  return { ...batch, ...change };
}

export const LEDGER_DROPPED: Scheme = buggy("ledger-dropped", {
  backend: buggyStore((reconcile, store) => (nowUs, pod, batch) => {
    for (const [i, key] of batch.keys.entries()) {
      const value = store.keyValue(batch.limits[i]?.name ?? "", key);
      value?.fill(0, STORED.ledgerNow, STORED.ledgerPast + 1);
    }
    return reconcile(nowUs, pod, batch);
  }),
});

export const NO_DEDUPLICATION: Scheme = buggy("no-deduplication", {
  backend: buggyStore((reconcile) => {
    let calls = 0;
    return (nowUs, pod, batch) => {
      calls += 1;
      return reconcile(nowUs, `${pod} call ${calls}`, batch);
    };
  }),
});

export const TIME_MOVES_BACK: Scheme = buggy("time-moves-back", {
  backend: buggyStore((reconcile, store) => (nowUs, pod, batch) => {
    const lane = store.laneValue(batch.lane);
    if (lane !== undefined) {
      lane[LANE.offset] = 0;
      lane[LANE.last] = 0;
      store.setLaneValue(batch.lane, lane);
    }
    return reconcile(nowUs, pod, batch);
  }),
});

export const SHARE_WITHOUT_PRIOR: Scheme = buggy("share-without-prior", {
  backend: buggyStore((reconcile) => {
    const TIMES = 1e6;
    return (nowUs, pod, batch) => {
      const entries = batch.entries.slice();
      for (let at = 0; at < entries.length; at += ENTRY_FIELDS) {
        entries[at + ENTRY.demand] = (entries[at + ENTRY.demand] ?? 0) * TIMES;
        entries[at + ENTRY.ownDemand] = (entries[at + ENTRY.ownDemand] ?? 0) * TIMES;
      }
      const reply = reconcile(nowUs, pod, withBatch(batch, { entries }));
      if (reply instanceof Promise) return reply;
      for (let at = 0; at < reply.entries.length; at += REPLY_FIELDS) {
        reply.entries[at + REPLY.ownDemand] = (reply.entries[at + REPLY.ownDemand] ?? 0) / TIMES;
      }
      return reply;
    };
  }),
});

/** A pod that notices that it is on its own starts from scratch, with a fresh fallback bucket. */
export const REFILL_ON_TIER_SWITCH: Scheme = buggy("refill-on-tier-switch", {
  engine: (options, start) => {
    let engine = new PodLimiter(options, start);
    let isolated = false;
    const call = <T>(now: number, run: (engine: PodLimiter) => T): T => {
      const before = isolated;
      isolated = engine.figures(now).fallbackActive;
      if (isolated && !before) {
        engine = new PodLimiter(options, now);
        engine.membershipFailed(now);
      }
      return run(engine);
    };
    return {
      get wakeAt() {
        return engine.wakeAt;
      },
      get settled() {
        return engine.settled;
      },
      // A check that is held by the engine that is thrown away would never be answered: deny it.
      decide: (now, checks) => call(now, (e) => e.decide(now, checks)),
      tick: (now, draw) => engine.tick(now, draw),
      replied: (now, lane, seq, reply) => engine.replied(now, lane, seq, reply),
      failed: (now, lane, seq, trouble) => engine.failed(now, lane, seq, trouble),
      callReplied: (now, id, reply) => engine.callReplied(now, id, reply),
      callFailed: (now, id, trouble) => engine.callFailed(now, id, trouble),
      membershipChanged: (now, view) => engine.membershipChanged(now, view),
      membershipListed: (now, pods) => engine.membershipListed(now, pods),
      membershipFailed: (now) => engine.membershipFailed(now),
      configChanged: (now, limits) => engine.configChanged(now, limits),
      beginLeave: (now) => engine.beginLeave(now),
      figures: (now) => engine.figures(now),
      largeCosts: (now) => engine.largeCosts(now),
    };
  },
});

export const DENIED_CHECK_CHARGED: Scheme = buggy("denied-check-charged", {
  engine: buggyEngine((engine) => ({
    decide(now, checks) {
      const decisions = engine.decide(now, checks);
      if ("held" in decisions || decisions.every((decision) => decision.allowed)) return decisions;
      for (const check of checks) engine.report(now, check);
      return decisions;
    },
  })),
});

export const LEAVE_REPORT_LOST: Scheme = buggy("leave-report-lost", {
  engine: buggyEngine(() => ({ beginLeave: () => {}, settled: true })),
});

export const COUNT_LOWERED_AT_ONCE: Scheme = buggy("count-lowered-at-once", {
  engine: buggyEngine((engine) => {
    let told = 0;
    return {
      membershipChanged(now, view) {
        told = view.pods;
        engine.membershipChanged(now, view);
      },
      tick(now, draw): Effect[] {
        return engine.tick(now, draw).map((effect) => {
          if (effect.kind !== "exchange" || told === 0) return effect;
          return { ...effect, batch: withBatch(effect.batch, { pods: told }) };
        });
      },
    };
  }),
});

export const NEW_CONTENT_UNDER_AN_OLD_NUMBER: Scheme = buggy("new-content-under-an-old-number", {
  backend: buggyStore((reconcile) => {
    // A pod that merges what it consumed meanwhile into a repeated batch reports it twice in all.
    const seen: Map<string, number> = new Map();
    return (nowUs, pod, batch) => {
      const last = seen.get(pod);
      seen.set(pod, batch.seq);
      if (last !== batch.seq) return reconcile(nowUs, pod, batch);
      return reconcile(nowUs, `${pod} merged`, batch);
    };
  }),
});

export const STOCK_NEVER_EXPIRES: Scheme = buggy("stock-never-expires", {
  backend: buggyStore((reconcile) => (nowUs, pod, batch) => {
    const reply = reconcile(nowUs, pod, batch);
    if (reply instanceof Promise) return reply;
    for (let at = 0; at < reply.entries.length; at += REPLY_FIELDS) {
      reply.entries[at + REPLY.stockSeconds] = 60;
    }
    return reply;
  }),
});

export const DEFICIT_IN_FRACTIONS: Scheme = buggy("deficit-in-fractions", {
  backend: buggyStore((reconcile, store) => (nowUs, pod, batch) => {
    for (const [i, key] of batch.keys.entries()) {
      const value = store.keyValue(batch.limits[i]?.name ?? "", key);
      if (value !== undefined) value[STORED.deficit] = (value[STORED.deficit] ?? 0) + 0.25;
    }
    return reconcile(nowUs, pod, batch);
  }),
});

/** Each isolated pod takes the margin for itself instead of its part of it. */
export const FALLBACK_NOT_DIVIDED: Scheme = buggy("fallback-not-divided", {
  limits: (limits) => limits.map((limit) => withFallback(limit, { margin: 20 * MARGIN })),
});

/** A limit that should stay strict is left open while the store is away. */
export const FALLBACK_OPEN: Scheme = buggy("fallback-open", {
  limits: (limits) => limits.map((limit) => withFallback(limit, { policy: "open" })),
});

const MARGIN = 0.9;

function withFallback(limit: Limit, change: Partial<Limit["fallback"]>): Limit {
  return { ...limit, fallback: { ...limit.fallback, ...change } };
}
