/** What the tidy rules rule out, and the exceptions with their reasons. */
import type { Ban, ForeignWord } from "./tidy-rules.ts";

/** Files over 300 lines that are better whole, with the reason. Best empty. */
export const LONG_FILES: Readonly<Record<string, string>> = {
  "test/membership/kubernetes-source.test.ts": "one protocol, told case by case around one server",
  "test/runtime/reconcile-loop.test.ts": "one loop, told case by case around one scripted engine",
  "test/support/sidecar.ts": "one process and what can be done to it",
  "test/support/virtual-fleet.ts": "one fleet and what can happen to it",
};

const WALL_CLOCK = "take an instant as an argument, or ask Clock.monotonicUs()";

export const BANS: readonly Ban[] = [
  {
    call: /\bDate\.now\(|\bnew Date\(\)/,
    instead: WALL_CLOCK,
    within: /^(src|sim)\//,
    except: { "src/daemon.ts": "wall time for people: when it started; nothing is decided by it" },
  },
  {
    call: /\bperformance\.now\(|\bprocess\.hrtime\b/,
    instead: "ask Clock.monotonicUs()",
    within: /^(src|sim)\//,
    except: {
      "src/runtime/system-clock.ts": "it is the clock",
      "src/runtime/signals.ts": "it times a person's two key presses, with no clock at hand yet",
      "src/server/idle-connections.ts": "it times real sockets, which no other clock can drive",
      "src/store/redis/connection.ts": "it times real sockets, which no other clock can drive",
      "sim/world.ts": "it tells how long a run took; nothing in the run depends on it",
    },
  },
  {
    call: /\bMath\.random\b/,
    instead: "take a draw as an argument, or ask Random.draw()",
    within: /^(src|sim|bench)\//,
    except: { "src/runtime/system-random.ts": "it is the source of chance" },
  },
  {
    call: /\bprocess\.exit\(/,
    instead: "set process.exitCode and let the event loop end, so that nothing is cut off",
    within: /^(src|sim|bench)\//,
    except: {
      "src/daemon.ts": "after a clean stop, should something keep the event loop from ending",
      "src/runtime/signals.ts": "a second signal, and an error that nothing caught, end at once",
    },
  },
  {
    call: /\btostring\(/,
    instead: "Lua turns numbers into 14 digits; use string.format with %.0f",
    within: /\.lua$/,
    except: {},
  },
  {
    call: /\bmath\.random\b/,
    instead: "the rules of the store draw no chance; they must be the same in TypeScript",
    within: /\.lua$/,
    except: {},
  },
];

/** Synonyms that the glossary rules out, with the word to use. */
export const RULED_OUT: ReadonlyMap<string, string> = new Map([
  ["quota", "limit, or tokens"],
  ["quotas", "limits, or tokens"],
  ["capacity", "burst, or what the maximum is of"],
  ["capacities", "bursts"],
  ["window", "interval"],
  ["windows", "intervals"],
  ["points", "tokens, or what is meant"],
  ["hits", "cost, or checks"],
  ["weight", "cost, or share"],
  ["weights", "costs, or shares"],
]);

/** Names that others gave. */
export const THEIR_NAMES: readonly RegExp[] = [
  /quota-exceeded|(temporary.)?reduced[ _-]?capacity/gi, // problem types registered with IANA
  /hits_?[aA]ddend/g, // field of Envoy's RateLimitRequest
  /is_?[nN]egative_?[hH]its/g, // field of Envoy's RateLimitDescriptor
  /quota_?[mM]ode/g, // field of envoyproxy/ratelimit's configuration
  /(fixed|sliding)[ -]window/gi, // how rivals' rules are called
];

export const FOREIGN_WORDS: readonly ForeignWord[] = [
  { pattern: /\bissue #?\d\b/i, reason: "a number that only our own tracker knows" },
  { pattern: /(^|[\s"'`(])\/work\b|\.\.\/shared\b/, reason: "a path of one machine" },
  { pattern: /registry\.(npmjs|yarnpkg)\b|npm\.pkg\.github/, reason: "a package registry's host" },
];
