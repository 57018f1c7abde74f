/**
 * Files that are refused, with the whole text of every problem and the place of the value that is
 * wrong: the file as a whole and its limits.
 */
import { limitWith, minimal } from "./loading.ts";

/** What it shows, the text, and the problems as printed. */
export type Refused = readonly [what: string, text: string, problems: readonly string[]];

export const REFUSED_LIMITS: readonly Refused[] = [
  [
    "an empty file",
    "",
    ["a.yaml:1:1: the file is empty; it must hold at least version: 1 and limits"],
  ],
  [
    "a file of comments",
    "# nothing\n\n",
    ["a.yaml:1:1: the file is empty; it must hold at least version: 1 and limits"],
  ],
  [
    "a list in place of a map",
    "- a\n- b\n",
    ["a.yaml:1:1: the file must be a map with version, limits and other fields; got a list"],
  ],
  [
    "no version and no limits",
    "fleet: x\n",
    [
      "a.yaml:1:1: version: is missing; must be 1",
      "a.yaml:1:1: limits: is missing; must be a list of 1 to 1000 items",
    ],
  ],
  [
    "another version",
    "version: 2\nlimits: [{ name: a, rate: 10/s }]",
    ["a.yaml:1:10: version: must be 1; got 2"],
  ],
  [
    "an empty list of limits",
    "version: 1\nlimits: []",
    ["a.yaml:2:9: limits: must be a list of 1 to 1000 items; got a list"],
  ],
  [
    "a misspelt field",
    limitWith("rate: 2/h", "burts: 10"),
    ["a.yaml:5:5: limits[0].burts: unknown field; did you mean burst?"],
  ],
  [
    "a field that resembles nothing",
    minimal("listen:", "  http: { foo: 1 }"),
    ["a.yaml:4:11: listen.http.foo: unknown field; known here: socket, tcp"],
  ],
  [
    "a field named like a method of objects",
    minimal("listen:", "  http: { constructor: 1, __proto__: { a: 1 } }"),
    [
      "a.yaml:4:11: listen.http.constructor: unknown field; known here: socket, tcp",
      "a.yaml:4:27: listen.http.__proto__: unknown field; known here: socket, tcp",
    ],
  ],
  [
    "a field given twice",
    limitWith("rate: 1/s", "rate: 2/s"),
    ['a.yaml:5:5: duplicate field "rate"; each may be given once'],
  ],
  [
    "two limits of one name",
    "version: 1\nlimits:\n  - { name: a, rate: 1/s }\n  - { name: a, rate: 2/s }",
    ['a.yaml:4:13: limits[1].name: is a duplicate of line 3; each must be unique; got "a"'],
  ],
  [
    "two overrides of one key",
    limitWith("rate: 1/s", "overrides:", "  - { key: k, rate: 1/s }", "  - { key: k, rate: 2/s }"),
    [
      "a.yaml:7:16: limits[0].overrides[1].key: " +
        'is a duplicate of line 6; each must be unique; got "k"',
    ],
  ],
  [
    "a rate that is no rate",
    limitWith("rate: ten"),
    [
      "a.yaml:4:11: limits[0].rate: " +
        'must be whole tokens per span, such as 100/s, 90/m or 10/15m; got "ten"',
    ],
  ],
  [
    "a rate that is a number",
    limitWith("rate: 100"),
    [
      "a.yaml:4:11: limits[0].rate: " +
        "must be whole tokens per span, such as 100/s, 90/m or 10/15m; got 100",
    ],
  ],
  [
    "a rate left empty",
    limitWith("rate:", "burst: 1"),
    [
      "a.yaml:4:5: limits[0].rate: " +
        "has no value; must be whole tokens per span, such as 100/s, 90/m or 10/15m; got null",
    ],
  ],
  [
    "no rate",
    limitWith("burst: 1"),
    [
      "a.yaml:3:5: limits[0].rate: " +
        "is missing; must be whole tokens per span, such as 100/s, 90/m or 10/15m",
    ],
  ],
  [
    "a negative rate",
    limitWith("rate: -5/s"),
    ['a.yaml:4:11: limits[0].rate: must be positive; got "-5/s"'],
  ],
  [
    "a rate of zero",
    limitWith("rate: 0/s"),
    ['a.yaml:4:11: limits[0].rate: must be at least one token per span; got "0/s"'],
  ],
  [
    "half a token",
    limitWith("rate: 0.5/s"),
    ['a.yaml:4:11: limits[0].rate: must be whole tokens per span; write 1/2s; got "0.5/s"'],
  ],
  [
    "a burst of one and a half",
    limitWith("rate: 1/s", "burst: 1.5"),
    ["a.yaml:5:12: limits[0].burst: must be a whole number of at least 1; got 1.5"],
  ],
  [
    "a burst that cannot be counted exactly",
    limitWith("rate: 1/s", "burst: 4503599627370496"),
    [
      "a.yaml:5:12: limits[0].burst: a burst of 4503599627370496 with 1 tokens per 1000000 us " +
        "cannot be counted exactly; choose a smaller burst or a shorter span; got 4503599627370496",
    ],
  ],
  [
    "a name with capitals",
    "version: 1\nlimits: [{ name: Api, rate: 1/s }]",
    [
      "a.yaml:2:18: limits[0].name: " +
        'must start with a-z and hold only a-z, 0-9 and -, at most 63 characters; got "Api"',
    ],
  ],
  [
    "a fallback of another kind",
    limitWith("rate: 1/s", "fallback: 7"),
    [
      "a.yaml:5:15: limits[0].fallback: " +
        "must be local, open or closed, or a map with policy, margin, max_pods; got 7",
    ],
  ],
  [
    "faults inside a fallback map",
    limitWith("rate: 1/s", "fallback: { polcy: open, margin: 1.5 }"),
    [
      "a.yaml:5:17: limits[0].fallback.polcy: unknown field; did you mean policy?",
      "a.yaml:5:38: limits[0].fallback.margin: must be a number above 0 and at most 1; got 1.5",
    ],
  ],
  [
    "a margin of zero",
    minimal("fallback: { margin: 0 }"),
    ["a.yaml:3:21: fallback.margin: must be a number above 0 and at most 1; got 0"],
  ],
];
