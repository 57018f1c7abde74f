import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { denyStatusIn } from "../../src/server/check-api.ts";
import { parseBatch, parseCheck, parseCheckRequest } from "../../src/server/check-body.ts";
import { parseJson } from "../../src/server/json-body.ts";
import { plainBatch, plainBody, plainTarget } from "../../src/server/plain-check.ts";
import { Problem } from "../../src/server/problem.ts";
import { parseQuery } from "../../src/server/query.ts";
import { ExactDecider, limitOf } from "./exact-decider.ts";

const decider = new ExactDecider([limitOf("a"), limitOf("api-per-user"), limitOf("9")]);

const rarely = <T>(usual: fc.Arbitrary<T>, ...others: fc.Arbitrary<T>[]): fc.Arbitrary<T> =>
  fc.oneof({ weight: 8, arbitrary: usual }, ...others);

const oddGap = fc.constantFrom(" ", "  ", "\t", "\n", "\u00a0", "//");
const noGap = fc.oneof({ weight: 20, arbitrary: fc.constant("") }, oddGap);
const gap = fc.oneof({ weight: 20, arbitrary: fc.constantFrom("", " ") }, oddGap);
const text = rarely(
  fc.stringMatching(/^[ -~]{1,40}$/).map((each) => JSON.stringify(each)),
  fc.string({ unit: "binary" }).map((each) => JSON.stringify(each)),
  fc.string().map((each) => `"${each}"`),
  fc.constantFrom('""', '"\\u0061"', '"\u00e9"', '"\u007f"', "null", '"__proto__"', '"\\ud800"'),
  fc.nat(300).map((length) => `"${"k".repeat(length)}"`),
);
const name = rarely(fc.constantFrom('"a"', '"api-per-user"', '"9"'), text);
const number = rarely(
  fc.integer({ min: 0, max: 2_000_000_000 }).map(String),
  fc.constantFrom("-0", "00", "01", "1.0", "1e3", "-1", "1000000000", "999999999", "9".repeat(30)),
  fc.constantFrom("0x1", "1_000", "true", '"1"', "[]"),
);

/** `name: value`, with gaps. */
function field(label: string, value: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.tuple(noGap, gap, value).map(([a, b, c]) => `"${label}"${a}:${b}${c}`);
}

const usual = fc
  .tuple(field("limit", name), field("key", text), fc.option(field("cost", number)))
  .map(([limit, key, cost]) => (cost === null ? [limit, key] : [limit, key, cost]));
const unusual = fc.array(
  fc.oneof(
    field("limit", name),
    field("key", text),
    field("cost", number),
    field("__proto__", text),
    field("more", text),
  ),
  { maxLength: 5 },
);
const bodies = fc
  .tuple(noGap, rarely(usual, unusual), rarely(fc.constantFrom(",", ", "), gap), noGap, noGap)
  .map(([open, fields, comma, close, after]) => `{${open}${fields.join(comma)}${close}}${after}`);

describe("a body in the plain shape", () => {
  it("means what it means as JSON", () => {
    let plain = 0;
    fc.assert(
      fc.property(bodies, fc.constantFrom("utf8" as const, "latin1" as const), (body, encoding) => {
        const bytes = Buffer.from(body, encoding);
        const check = plainBody(bytes, decider);
        if (check === undefined) return;
        plain += 1;
        const checks = [check];
        expect(parseCheckRequest(parseJson(bytes), decider)).toEqual({ checks, several: false });
        expect(Object.is(check.cost, -0)).toBe(false);
      }),
      { numRuns: 5_000 },
    );
    // Else this would hold for a reader that reads nothing.
    expect(plain).toBeGreaterThan(200);
  });

  it("is what common JSON writers make of a check", () => {
    const fields = { limit: "api-per-user", key: "user 42 <a@b.c>", cost: 7 };
    const check = { limit: decider.limit("api-per-user"), key: "user 42 <a@b.c>", cost: 7 };
    const compact = JSON.stringify(fields);
    const spaced = compact.replaceAll('":', '": ').replaceAll(',"', ', "');
    expect(plainBody(Buffer.from(compact), decider)).toEqual(check);
    expect(plainBody(Buffer.from(spaced), decider)).toEqual(check);
    expect(plainBody(Buffer.from('{"limit":"a","key":"k"}'), decider)?.cost).toBe(1);
  });

  it("is no other shape", () => {
    for (const body of [
      '{"limit":"a","key":"k","cost":1,"cost":2}',
      '{"limit":"a","key":"k"}x',
      '{"limit":"a","key":"k"}\n{}',
      '{"limit":"b","key":"k"}',
      '{"limit":"a","key":""}',
      '{"limit":"a","key":"\\n"}',
      `{"limit":"a","key":"${"k".repeat(257)}"}`,
    ]) {
      expect(plainBody(Buffer.from(body), decider), body).toBeUndefined();
    }
  });
});

/** Mostly of plain items, as one that is not makes the whole batch so. */
const plainItem = fc
  .tuple(fc.stringMatching(/^[!#-Z^-~]{1,20}$/), fc.option(fc.nat(999_999_999)))
  .map(([key, cost]) => `{"limit":"a","key":"${key}"${cost === null ? "" : `,"cost":${cost}`}}`);
const items = fc.array(fc.oneof({ weight: 20, arbitrary: plainItem }, bodies), { maxLength: 6 });
const batches = fc
  .tuple(gap, items, rarely(fc.constantFrom(",", ", "), gap), noGap, noGap)
  .map(([open, list, comma, close, after]) => {
    return `{"requests":${open}[${list.join(comma)}${close}]}${after}`;
  });

describe("a batch in the plain shape", () => {
  it("means what it means as JSON", () => {
    let plain = 0;
    fc.assert(
      fc.property(batches, (batch) => {
        const bytes = Buffer.from(batch);
        const checks = plainBatch(bytes, 5, decider);
        if (checks === undefined) return;
        plain += 1;
        const requests = parseBatch(parseJson(bytes));
        if (requests instanceof Problem) throw new Error(`a problem: ${requests.detail}`);
        expect(checks.length).toBeLessThanOrEqual(5);
        expect(requests.map((each) => parseCheckRequest(each, decider))).toEqual(
          checks.map((check) => ({ checks: [check], several: false })),
        );
      }),
      { numRuns: 5_000 },
    );
    expect(plain).toBeGreaterThan(200);
  });
});

const part = rarely(
  fc.stringMatching(/^[a-z0-9-]{1,20}$/),
  fc.constantFrom("a", "api-per-user", "1", "", "%61", "+", "%", "a=b", "a&b", "\u00e9", "#x"),
  fc.string(),
);
const queries = fc
  .tuple(rarely(fc.constantFrom("a", "9"), part), part, fc.option(fc.oneof(number, part)), part)
  .chain(([limit, key, cost, more]) => {
    const short = `limit=${limit}&key=${key}`;
    const whole = cost === null ? short : `${short}&cost=${cost}`;
    return fc.constantFrom(
      whole,
      `${whole}&deny_status=429`,
      `${whole}&${more}`,
      `${more}&${whole}`,
    );
  });

describe("a target in the plain shape", () => {
  it("means what its query means", () => {
    let plain = 0;
    fc.assert(
      fc.property(queries, (query) => {
        const check = plainTarget(`/v1/check?${query}`, decider);
        if (check === undefined) return;
        plain += 1;
        const fields = parseQuery(query);
        if (fields instanceof Problem) throw new Error(`a problem: ${fields.detail}`);
        expect(denyStatusIn(fields)).toBe(200);
        const cost = fields.has("cost") ? Number(fields.get("cost")) : undefined;
        const asked = { limit: fields.get("limit"), key: fields.get("key"), cost };
        expect(parseCheck(asked, "", decider)).toEqual(check);
      }),
      { numRuns: 5_000 },
    );
    expect(plain).toBeGreaterThan(200);
  });
});
