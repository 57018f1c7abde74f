/** That queries are read as Prometheus reads them. */
import { describe, expect, it } from "vitest";
import { isSelected, readQuery } from "./promql.ts";

describe("a query", () => {
  it("is read with its selectors, their labels and what it is grouped by", () => {
    const query =
      'sum by (a, le) (rate(x_total{b="c", d!~"e|f"}[5m])) / on (g) group_left count(y)';
    expect(readQuery(query)).toEqual({
      selectors: [
        {
          metric: "x_total",
          matchers: [
            { label: "b", operator: "=", value: "c" },
            { label: "d", operator: "!~", value: "e|f" },
          ],
        },
        { metric: "y", matchers: [] },
      ],
      groupedBy: ["a", "le", "g"],
    });
  });

  it.each(["sum by (a (x)", "rate(x[5m)", 'x{a="b"', "sum(x) by"])("is refused: %s", (text) => {
    expect(() => readQuery(text)).toThrow("not PromQL");
  });

  it.each([
    ["=", "ok", true],
    ["!=", "ok", false],
    ["=~", "o.|x", true],
    ["=~", "o", false],
    ["!~", "x", true],
  ])("selects by %s %s: %s", (operator, value, selects) => {
    expect(isSelected({ label: "a", operator, value }, "ok")).toBe(selects);
  });
});
