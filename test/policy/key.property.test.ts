import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ABSENT, keyOf, type Part, partOf, REPEATED } from "../../src/policy/key.ts";

/** Short texts of few characters, so that joined ones have a chance to look alike. */
const bytes = fc.oneof(
  { weight: 4, arbitrary: fc.stringMatching(/^[a1:,@%+-]{0,6}$/) },
  fc.constantFrom("text:", "list:1:a", "absent:", "address:1.2.3.4", "\xc3\xab", "\xeb", "\0"),
  fc.string({ unit: "binary", maxLength: 400 }).map((text) => Buffer.from(text).toString("latin1")),
);

const parts: fc.Arbitrary<Part> = fc.oneof(
  { weight: 4, arbitrary: bytes.map(partOf) },
  fc.constantFrom<Part>(ABSENT, REPEATED, { kind: "address", text: "1.2.3.4" }),
);
const lists = fc.array(parts, { minLength: 1, maxLength: 4 });

describe("O24 keys", () => {
  it("are equal only for equal parts", () => {
    fc.assert(
      fc.property(lists, lists, (a, b) => {
        expect(keyOf(a) === keyOf(b)).toBe(JSON.stringify(a) === JSON.stringify(b));
      }),
      { numRuns: 5_000 },
    );
  });

  it("have 1 to 256 bytes of UTF-8 and lose nothing in it", () => {
    fc.assert(
      fc.property(lists, (list) => {
        const key = keyOf(list);
        expect(Buffer.byteLength(key)).toBeGreaterThanOrEqual(1);
        expect(Buffer.byteLength(key)).toBeLessThanOrEqual(256);
        expect(Buffer.from(key).toString()).toBe(key);
      }),
      { numRuns: 2_000 },
    );
  });
});
