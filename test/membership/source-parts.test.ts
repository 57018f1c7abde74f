/** Edges of the parts of which the sources are made. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EndpointSlices, SLICES_MAX } from "../../src/membership/endpoint-slices.ts";
import { RetryPause } from "../../src/membership/retry-pause.ts";
import { WatchLines } from "../../src/membership/watch-lines.ts";
import { podEndpoint } from "../support/kube-api.ts";

const slice = (name: string, endpoints: unknown): unknown => ({ metadata: { name }, endpoints });

describe("endpoint slices", () => {
  it.each([
    ["nothing", undefined],
    ["a text", "slice"],
    ["no name", { metadata: {}, endpoints: [] }],
    ["endpoints that are no list", slice("a", "x")],
  ])("refuse %s and stay as they were", (_what, value) => {
    const slices = new EndpointSlices();
    slices.put(slice("a", [podEndpoint(1)]));
    expect(() => slices.put(value)).toThrow(Error);
    expect(() => slices.replace([slice("b", []), value])).toThrow(Error);
    expect(slices.pods).toBe(1);
  });

  it("leave out endpoints that are nothing at all", () => {
    const slices = new EndpointSlices();
    slices.put(slice("a", [null, 7, {}, { addresses: [] }, { addresses: "x" }, podEndpoint(1)]));
    expect(slices.pods).toBe(1);
  });

  it("have a maximum, and a slice that is there already may still change", () => {
    const slices = new EndpointSlices();
    for (let i = 0; i < SLICES_MAX; i += 1) slices.put(slice(`s-${i}`, [podEndpoint(i)]));
    expect(() => slices.put(slice("one-more", []))).toThrow(/more than 1000/);
    slices.put(slice("s-0", []));
    expect(slices.pods).toBe(SLICES_MAX - 1);
    const many = Array.from({ length: SLICES_MAX + 1 }, (_, i) => slice(`t-${i}`, []));
    expect(() => slices.replace(many)).toThrow(/more than 1000/);
    expect(slices.pods).toBe(SLICES_MAX - 1);
  });
});

describe("lines of a watch", () => {
  it("are the same however the stream is cut", () => {
    const texts = fc.array(fc.string({ unit: "grapheme" }).map((text) => text.replace(/\n/g, "")));
    fc.assert(
      fc.property(texts, fc.array(fc.nat(40)), (lines, cuts) => {
        const whole = lines.map((line) => `${line}\n`).join("");
        const reader = new WatchLines();
        const read: string[] = [];
        let at = 0;
        for (const length of cuts) {
          read.push(...reader.take(whole.slice(at, at + length)));
          at += length;
        }
        read.push(...reader.take(whole.slice(at)));
        expect(read).toEqual(lines);
        expect(reader.isInside).toBe(false);
      }),
    );
  });

  it("have a longest one", () => {
    const lines = new WatchLines(10);
    expect(lines.take("0123456789\n01234")).toEqual(["0123456789"]);
    expect(lines.isInside).toBe(true);
    expect(() => lines.take("567890")).toThrow(/longer than 10/);
  });
});

describe("the pause after a failure", () => {
  it("doubles up to half a minute and begins anew after a success", () => {
    const pause = new RetryPause({ draw: () => 0.999_999 });
    const pauses = Array.from({ length: 9 }, () => Math.round(pause.next()));
    expect(pauses).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
    pause.reset();
    expect(Math.round(pause.next())).toBe(500);
  });

  it("is at least half of that, and at least what the other side asks for within reason", () => {
    const pause = new RetryPause({ draw: () => 0 });
    expect(pause.next()).toBe(250);
    expect(pause.next(5_000)).toBe(5_000);
    expect(pause.next(3_600_000)).toBe(30_000);
  });
});
