/**
 * Bugs of leased and exact limits, planted from outside as those of `planted-bugs.ts`: each wraps
 * the shipped store or the shipped engine so that it behaves as if a rule had been forgotten.
 */
import type { Engine } from "../../sim/aliquot-node.ts";
import { type AliquotParts, aliquotScheme } from "../../sim/aliquot-scheme.ts";
import { embeddedBackend, type StoreBackend } from "../../sim/aliquot-store.ts";
import { entriesOf } from "../../sim/call-laws.ts";
import type { Scheme } from "../../sim/scheme.ts";
import type { Effect } from "../../src/core/effect.ts";
import { PodLimiter } from "../../src/core/pod-limiter.ts";
import {
  CALL,
  LEASE_SLOT_US,
  type StoreCall,
  type StoreCallReply,
  TAKE,
  TAKE_FIELDS,
  TAKE_REPLY,
} from "../../src/core/store-call.ts";
import { EmbeddedStore } from "../../src/store/embedded/embedded-store.ts";

function buggy(name: string, parts: AliquotParts): Scheme {
  return aliquotScheme({ name, ...parts }) as Scheme;
}

type Decide = (nowUs: number, call: StoreCall) => StoreCallReply;

/** A store whose decisions are wrapped. */
function buggyCalls(wrap: (decide: Decide, store: EmbeddedStore) => Decide): () => StoreBackend {
  return () => {
    const store = new EmbeddedStore({ lanes: 4 });
    const decide = wrap((nowUs, call) => store.call(nowUs, call), store);
    return { ...embeddedBackend(store), call: (nowUs, _pod, call) => decide(nowUs, call) };
  };
}

function buggyEngine(
  change: (engine: PodLimiter) => Partial<Engine>,
): NonNullable<AliquotParts["engine"]> {
  return (options, now) => {
    const engine = new PodLimiter(options, now);
    const changed = change(engine);
    return new Proxy(engine, {
      get(target, name) {
        if (name in changed) return Reflect.get(changed, name);
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  };
}

/** Places in the stored value of a key: its time, and what is out by slot. */
const STORED = { time: 4, out: 13 } as const;

/**
 * Some pods hold leases for thrice their time: their clocks run at less than a third of the rate.
 */
export const LEASE_USED_PAST_ITS_DEADLINE: Scheme = buggy("lease-used-past-its-deadline", {
  engine: (options, start) => {
    const slow = (now: number): number => start + (now - start) * SLOW;
    const engine = new PodLimiter(options, start);
    // If all were slow, the store's time would follow them.
    if (!SLOW_PODS.includes(options.podId)) return engine;
    return new Proxy(engine, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name, target);
        if (name === "wakeAt") return start + ((value as number) - start) / SLOW;
        if (typeof value !== "function") return value;
        return (now: number, ...rest: unknown[]) => value.apply(target, [slow(now), ...rest]);
      },
    });
  },
});

const SLOW = 0.3;
const SLOW_PODS = ["pod-0", "pod-1", "pod-2"];

/** A call that brought no reply is sent again, as clients do that retry by themselves. */
export const CALL_SENT_AGAIN: Scheme = buggy("call-sent-again", {
  engine: buggyEngine((engine) => {
    const sent: Map<number, StoreCall> = new Map();
    const again: StoreCall[] = [];
    return {
      tick(now, draw): Effect[] {
        const effects = engine.tick(now, draw);
        for (const effect of effects)
          if (effect.kind === "call") sent.set(effect.call.id, effect.call);
        return [...effects, ...again.splice(0).map((call) => ({ kind: "call", call }) as const)];
      },
      callFailed(now, id, trouble) {
        const call = sent.get(id);
        if (call !== undefined && trouble === "timeout") again.push(call);
        sent.delete(id);
        engine.callFailed(now, id, trouble);
      },
    };
  }),
});

/** What was given back is credited a second time, long after, as if it were new. */
export const OLD_GIVE_BACK_CREDITED: Scheme = buggy("old-give-back-credited", {
  backend: buggyCalls((decide) => {
    const given: { atUs: number; tokens: number; burst: number }[] = [];
    return (nowUs, call) =>
      decide(
        nowUs,
        withTakes(call, (entry) => {
          const [tokens = 0, burst = 0] = [entry[TAKE.giveBack], entry[TAKE.burst]];
          if (tokens > 0) given.push({ atUs: nowUs, tokens, burst });
          const old = given[0];
          if (old === undefined || nowUs - old.atUs < 300_000 || old.burst !== burst) return;
          given.shift();
          entry[TAKE.giveBack] = tokens + old.tokens;
          entry[TAKE.takenAt] = nowUs;
        }),
      );
  }),
});

/** What a take got for a check that another limit denied is lost. */
export const GIVE_BACK_FORGOTTEN: Scheme = buggy("give-back-forgotten", {
  backend: buggyCalls((decide) => (nowUs, call) => {
    return decide(
      nowUs,
      withTakes(call, (entry) => {
        entry[TAKE.giveBack] = 0;
      }),
    );
  }),
});

/** The bucket refills up to the burst although some of it is out in leases. */
export const REFILL_NOT_CLIPPED: Scheme = buggy("refill-not-clipped", {
  backend: buggyCalls((decide, store) => (nowUs, call) => {
    for (const [i, key] of call.keys.entries()) {
      const limit = call.limits[i];
      const value = limit === undefined ? undefined : store.keyValue(limit.name, key);
      if (limit === undefined || value === undefined) continue;
      const out = [...value.subarray(STORED.out, STORED.out + 3)];
      const before = Math.floor((value[STORED.time] ?? 0) / LEASE_SLOT_US);
      value.fill(0, STORED.out, STORED.out + 3);
      decide(nowUs, glance(call, i));
      const after = Math.floor((value[STORED.time] ?? 0) / LEASE_SLOT_US);
      for (let slot = 0; slot < 3; slot += 1) {
        value[STORED.out + slot] = out[slot + after - before] ?? 0;
      }
    }
    return decide(nowUs, call);
  }),
});

/** A store that is asked for an exact limit no longer knows of leases. */
export const LEASES_FORGOTTEN_BY_A_TAKE: Scheme = buggy("leases-forgotten-by-a-take", {
  backend: buggyCalls((decide, store) => (nowUs, call) => {
    if (call.kind === "take") {
      for (const [i, key] of call.keys.entries()) {
        const value = store.keyValue(call.limits[i]?.name ?? "", key);
        value?.fill(0, STORED.out, STORED.out + 3);
      }
    }
    return decide(nowUs, call);
  }),
});

/** A denial says nothing of when to ask again, so every check asks. */
export const NO_TICKETS: Scheme = buggy("no-tickets", {
  backend: buggyCalls((decide) => (nowUs, call) => {
    const reply = decide(nowUs, call);
    if (call.kind !== "take") return reply;
    for (const { answer } of entriesOf(call, reply)) {
      answer[TAKE_REPLY.deniedCost] = 0;
      answer[TAKE_REPLY.retryAt] = 0;
    }
    return reply;
  }),
});

/** A take of one key of a call that asks for nothing. */
function glance(call: StoreCall, index: number): StoreCall {
  const entry = new Float64Array(TAKE_FIELDS);
  const nothing = { nowUs: 0, epoch: 0, rawUs: 0, isStale: false, entries: new Float64Array() };
  const asked = [...entriesOf(call, nothing)][index]?.entry ?? entry;
  entry.set(asked.subarray(0, CALL.demand));
  const [limit, key] = [call.limits[index], call.keys[index]];
  if (limit === undefined || key === undefined) throw new Error("a call without its limit");
  return { ...call, kind: "take", limits: [limit], keys: [key], entries: entry };
}

function withTakes(call: StoreCall, change: (entry: Float64Array) => void): StoreCall {
  if (call.kind !== "take") return call;
  const copy = { ...call, entries: call.entries.slice() };
  const nothing = { nowUs: 0, epoch: 0, rawUs: 0, isStale: false, entries: new Float64Array() };
  for (const { entry } of entriesOf(copy, nothing)) change(entry);
  return copy;
}
