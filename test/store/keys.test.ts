import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { KeyNames } from "../../src/store/redis/keys.ts";

const names = new KeyNames("checkout", 4);

describe("O24 names in Redis", () => {
  it.each([
    {
      pair: [
        ["user", "10.0.0.1"],
        ["ip", "10.0.0.1"],
      ],
      why: "one value, two limits",
    },
    {
      pair: [
        ["a", "b:c"],
        ["a:b", "c"],
      ],
      why: "a separator in the one or the other",
    },
    {
      pair: [
        ["x", "y_z"],
        ["x_y", "z"],
      ],
      why: "an underscore in the one or the other",
    },
    {
      pair: [
        ["l", "v"],
        ["l", "v\0"],
      ],
      why: "a NUL at the end",
    },
    {
      pair: [
        ["l", "1:a"],
        ["l1", ":a"],
      ],
      why: "what looks like the length in front",
    },
    {
      pair: [
        ["l", "\ud800"],
        ["l", "\ud801"],
      ],
      why: "lone surrogates, one character in UTF-8",
    },
    {
      pair: [
        ["l", "e\u0301"],
        ["l", "\u00e9"],
      ],
      why: "two spellings of one letter",
    },
  ])("keep apart $why", ({ pair: [first = [], second = []] }) => {
    expect(names.state(first[0] ?? "", first[1] ?? "")).not.toBe(
      names.state(second[0] ?? "", second[1] ?? ""),
    );
  });

  it("hold no byte of a key: digits of a digest behind limit, fleet and group", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 300 }), (key) => {
        expect(names.state("api-per-user", key)).toMatch(
          /^aliquot:\{\d{1,2}\}:checkout:api-per-user:[A-Za-z0-9_-]{22}$/,
        );
      }),
    );
  });

  it("never meet for different limits and keys", () => {
    const text = fc.string({ unit: fc.constantFrom("a", ":", "1", "\0"), maxLength: 4 });
    fc.assert(
      fc.property(text, text, text, text, (limit, key, otherLimit, otherKey) => {
        const same = limit === otherLimit && key === otherKey;
        expect(names.state(limit, key) === names.state(otherLimit, otherKey)).toBe(same);
      }),
    );
  });

  it("of a lane's records share one hash tag, whatever the pod is called", () => {
    const own = [names.meta(3), names.sequence(3, "pod}{0", "a1")];
    expect(own.map((name) => /\{([^}]*)\}/.exec(name)?.[1])).toEqual(["3", "3"]);
    expect(names.meta(3)).not.toBe(names.state("meta", ""));
  });

  it("are refused for a lane that does not exist", () => {
    expect(() => names.meta(4)).toThrow("lane must be from 0 to 3, got 4");
    expect(() => new KeyNames("checkout", 3)).toThrow("lanes must divide 64, got 3");
  });
});
