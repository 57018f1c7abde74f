/** The DNS source against a server that speaks DNS over real sockets. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../fleet/until.ts";
import { DnsSource } from "../../src/membership/dns-source.ts";
import { PodListing } from "../../src/membership/pod-listing.ts";
import { searchNames } from "../../src/membership/search-names.ts";
import { A, DnsServer, REFUSED, SERVER_FAILURE } from "../support/dns-server.ts";

const WITHIN_MS = 15_000;
const NAME = "web.shop.svc.cluster.local";

let server: DnsServer;
let source: DnsSource | undefined;
let told: (number | undefined)[];
let log: string[];
let folder: string;

beforeEach(async () => {
  server = new DnsServer();
  await server.start();
  told = [];
  log = [];
  folder = mkdtempSync(join(tmpdir(), "aliquot-dns-"));
});

afterEach(async () => {
  source?.stop();
  await server.dispose();
  rmSync(folder, { recursive: true, force: true });
});

function startSource(service = `${NAME}.`, resolvConf = ""): void {
  const path = join(folder, "resolv.conf");
  writeFileSync(path, resolvConf);
  const listing = new PodListing({
    clock: { monotonicUs: () => Math.round(performance.now() * 1_000) },
    tell: (pods) => told.push(pods),
    log: {
      failing: (error) => log.push(`failing: ${(error as Error).message}`),
      recovered: (pods) => log.push(`recovered: ${pods}`),
    },
  });
  source = new DnsSource({
    service,
    resolver: { host: "127.0.0.1", port: server.port },
    listing,
    random: { draw: () => 0.5 },
    pauseMs: 50,
    resolvConf: path,
  });
  source.start();
}

const listed = (pods: number): Promise<void> =>
  until(`${pods} pods are listed (told ${told.slice(-5)})`, WITHIN_MS, () => told.at(-1) === pods);

describe("pods of a headless Service, by their addresses", () => {
  it("are counted again and again, whatever the answer's time to live", async () => {
    server.set(NAME, 3);
    startSource();
    await listed(3);
    server.set(NAME, 12);
    await listed(12);
    server.set(NAME, 5);
    await listed(5);
    expect(log).toEqual([]);
  });

  it("are 1,000, over TCP", async () => {
    server.set(NAME, 1_000);
    startSource();
    await listed(1_000);
    expect(server.overTcp).toBeGreaterThan(0);
  });

  it("count once when they have an address of each family", async () => {
    const aaaa = [1, 2, 3].map((i) => `fd00${"0".repeat(27)}${i}`);
    server.names.set(NAME, { a: ["10.0.0.1", "10.0.0.2", "10.0.0.3"], aaaa });
    startSource();
    await listed(3);
    server.names.set(NAME, { aaaa: aaaa.slice(0, 2) });
    await listed(2);
  });

  it("are found by a short name in the search domains of resolv.conf", async () => {
    server.set(NAME, 4);
    startSource("web", "search shop.svc.cluster.local svc.cluster.local\noptions ndots:5\n");
    await listed(4);
    await until("it was asked again", WITHIN_MS, () => server.asked.length >= 6);
    expect(new Set(server.asked)).toEqual(new Set([NAME]));
  });

  it("are found behind search domains without them, which are then left alone", async () => {
    server.set(NAME, 4);
    startSource(NAME, "search a.example b.example\noptions ndots:5\n");
    await listed(4);
    const asked = server.asked.length;
    await until("it was asked again", WITHIN_MS, () => server.asked.length >= asked + 4);
    expect(new Set(server.asked.slice(asked))).toEqual(new Set([NAME]));
  });
});

describe("a DNS server in trouble", () => {
  it.each([
    [
      "is silent",
      () => {
        server.silent = true;
      },
    ],
    [
      "fails",
      () => {
        server.failure = { code: SERVER_FAILURE };
      },
    ],
    [
      "refuses",
      () => {
        server.failure = { code: REFUSED };
      },
    ],
    [
      "has forgotten the name",
      () => {
        server.names.clear();
      },
    ],
    [
      "knows the name and nobody behind it",
      () => {
        server.names.set(NAME, {});
      },
    ],
  ])("that %s leaves the last number as it is, and is told once", async (_how, begin) => {
    server.set(NAME, 7);
    startSource();
    await listed(7);
    begin();
    await until("the trouble is told", WITHIN_MS, () => log.length > 0);
    expect(told.at(-1)).toBe(7);
    server.silent = false;
    server.failure = undefined;
    server.set(NAME, 8);
    await listed(8);
    expect(log).toEqual([expect.stringMatching(/^failing: /), "recovered: 8"]);
  });

  it("that fails for one family is believed for the other", async () => {
    server.failure = { code: SERVER_FAILURE, type: A };
    const aaaa = [1, 2].map((i) => `fd00${"0".repeat(27)}${i}`);
    server.names.set(NAME, { a: ["10.0.0.1"], aaaa });
    startSource();
    await listed(2);
  });
});

describe("a source that is stopped", () => {
  it("asks no more and tells nothing of the question under way", async () => {
    server.silent = true;
    startSource();
    await new Promise((resolve) => setImmediate(resolve));
    source?.stop();
    server.silent = false;
    server.set(NAME, 3);
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(told).toEqual([]);
    expect(log).toEqual([]);
  });
});

describe("the names that a short name stands for", () => {
  const conf = "nameserver 10.0.0.10\nsearch a.local b.local.\noptions ndots:2 timeout:1\n";

  it.each([
    ["web", conf, ["web.a.local", "web.b.local", "web"]],
    ["web.shop", conf, ["web.shop.a.local", "web.shop.b.local", "web.shop"]],
    ["web.shop.svc", conf, ["web.shop.svc", "web.shop.svc.a.local", "web.shop.svc.b.local"]],
    ["web.shop.", conf, ["web.shop"]],
    ["web", "", ["web"]],
    ["web.shop", "search a.local\n", ["web.shop", "web.shop.a.local"]],
    [
      "web",
      "search 1 2 3 4 5 6 7 8\n",
      ["1", "2", "3", "4", "5", "6"].map((d) => `web.${d}`).concat("web"),
    ],
  ])("are for %s those of its resolv.conf (%j)", (name, text, names) => {
    expect(searchNames(name, text)).toEqual(names);
  });
});
