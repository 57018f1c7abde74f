import { describe, expect, it } from "vitest";
import { normalAddress } from "../../src/policy/client-address.ts";
import { keyFor } from "./requests.ts";

interface Sketch {
  readonly forwarded?: string | readonly string[];
  readonly hops?: number;
  readonly peer?: string;
}

function address({ forwarded, hops = 1, peer }: Sketch): string | undefined {
  const headers = forwarded === undefined ? {} : { "x-forwarded-for": forwarded };
  const request = peer === undefined ? { headers } : { headers, peer };
  return keyFor(["client-address"], "/", request, { trustedHops: hops });
}

describe("O25 the client address", () => {
  it("(a) has no port", () => {
    const keys = Array.from({ length: 100 }, (_, port) =>
      address({ forwarded: `203.0.113.7:${51_000 + port}` }),
    );
    expect(new Set(keys)).toEqual(new Set(["address:203.0.113.7"]));
  });

  it("(b) is one for all spellings of an IPv6 address and its network", () => {
    const spellings = [
      "[2001:db8::1]:443",
      "2001:db8::1",
      "[2001:db8::1]",
      "2001:DB8:0:0:0:0:0:1",
      "2001:db8::ffff:1",
      "2001:db8::1%eth0",
    ];
    const keys = spellings.map((forwarded) => address({ forwarded }));
    expect(new Set(keys)).toEqual(new Set(["address:2001:db8::/64"]));
  });

  it("(c) is the peer when no hop is trusted, whatever the header says", () => {
    const keys = Array.from({ length: 100 }, (_, last) =>
      address({ forwarded: `198.51.100.${last}`, hops: 0, peer: "192.0.2.1" }),
    );
    expect(new Set(keys)).toEqual(new Set(["address:192.0.2.1"]));
  });

  it("(d) is the entry that the trusted hop appended, not the one that the client sent", () => {
    expect(address({ forwarded: "198.51.100.1, 203.0.113.7" })).toBe("address:203.0.113.7");
    expect(address({ forwarded: ["198.51.100.1", "203.0.113.7"] })).toBe("address:203.0.113.7");
    expect(address({ forwarded: "1.1.1.1, 203.0.113.7, 10.0.0.1", hops: 2 })).toBe(
      "address:203.0.113.7",
    );
  });

  it("is the first entry when there are fewer than trusted hops, which no client wrote", () => {
    expect(address({ forwarded: "203.0.113.7", hops: 3 })).toBe("address:203.0.113.7");
  });

  it("is the peer when a trusted hop sent no header", () => {
    expect(address({ peer: "::ffff:192.0.2.1" })).toBe("address:192.0.2.1");
    expect(address({ forwarded: " , ", peer: "192.0.2.1" })).toBe("address:192.0.2.1");
  });

  it("is absent on a Unix socket without trusted hops, and for an entry that is no address", () => {
    expect(address({ forwarded: "203.0.113.7", hops: 0 })).toBe("absent:");
    for (const entry of ["unknown", "unix:", "_hidden", "300.1.1.1", "1.2.3", "x".repeat(999)]) {
      expect(address({ forwarded: entry, peer: "192.0.2.1" })).toBe("absent:");
    }
  });
});

describe("an address", () => {
  it.each([
    ["::ffff:192.0.2.7", 64, "192.0.2.7"],
    ["::FFFF:c000:0207", 64, "192.0.2.7"],
    ["2001:db8:1:2:3:4:5:6", 64, "2001:db8:1:2::/64"],
    ["2001:db8:1:2:3:4:5:6", 48, "2001:db8:1::/48"],
    ["2001:db8:1:2ff:3:4:5:6", 56, "2001:db8:1:200::/56"],
    ["2001:db8:1:2:3:4:5:6", 128, "2001:db8:1:2:3:4:5:6/128"],
    ["64:ff9b::192.0.2.33", 128, "64:ff9b:0:0:0:0:c000:221/128"],
    ["::1", 64, "::/64"],
    ["::1", 128, "0:0:0:0:0:0:0:1/128"],
  ])("%s with %d bits is %s", (spelled, prefix, normal) => {
    expect(normalAddress(spelled, prefix)).toBe(normal);
  });
});
