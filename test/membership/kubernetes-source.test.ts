/** The Kubernetes source against a server that speaks list and watch over real HTTPS. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../fleet/until.ts";
import { type KubeApi, NAMESPACE, podEndpoint } from "../support/kube-api.ts";
import { SourceUnderTest, WITHIN_MS } from "./kube-source.ts";

let run: SourceUnderTest;
let api: KubeApi;

beforeEach(async () => {
  run = new SourceUnderTest();
  api = run.api;
  await api.start();
});

afterEach(() => run.dispose());

describe("pods of a Service, listed and watched", () => {
  it("are counted at once, in the namespace of the service account", async () => {
    api.setPods(3);
    run.start();
    await run.listed(3);
    expect(api.lists).toHaveLength(1);
    // The first list may come from the server's cache: a fleet that starts must not bend the store
    // behind it.
    expect(api.lists[0]?.get("resourceVersion")).toBe("0");
  });

  it("are looked for in the namespace that was named", async () => {
    api.setPods(2);
    run.start({ namespace: NAMESPACE });
    await run.listed(2);
  });

  it("grow and shrink by events, without another list", async () => {
    api.setPods(3);
    run.start();
    await run.watching();
    api.setPods(30);
    await run.listed(30);
    api.setPods(5);
    await run.listed(5);
    api.put("web-1", [podEndpoint(900)]);
    await run.listed(6);
    api.remove("web-0");
    await run.listed(1);
    expect(api.lists).toHaveLength(1);
    expect(api.watches).toHaveLength(1);
  });

  it("are 1,000 in ten slices, and one more", async () => {
    api.setPods(1_000);
    run.start();
    await run.listed(1_000);
    await run.watching();
    api.setPods(1_001);
    await run.listed(1_001);
    api.setPods(250);
    await run.listed(250);
  });

  it("count once when they stand in several slices", async () => {
    api.put("web-0", [podEndpoint(1), podEndpoint(2)]);
    api.put("web-1", [podEndpoint(2), podEndpoint(3)]);
    run.start();
    await run.listed(3);
    await run.watching();
    api.put("web-0", [podEndpoint(1)]);
    await until("the change came", WITHIN_MS, () => run.told.length >= 3);
    expect(run.told.at(-1)).toBe(3);
  });

  it("count while they are ready, serving or terminating", async () => {
    api.put("web-0", [
      podEndpoint(1),
      podEndpoint(2, { ready: false, serving: true, terminating: true }),
      podEndpoint(3, { ready: false, serving: false, terminating: true }),
      podEndpoint(4, { ready: false, serving: false }),
      podEndpoint(5, { ready: null, serving: null, terminating: null }),
      podEndpoint(6, { ready: false, serving: null, terminating: null }),
      { addresses: ["10.9.9.9"] },
    ]);
    api.put("web-1", null);
    run.start();
    await run.listed(5);
  });
});

describe("a watch", () => {
  it("goes on where the last one ended, without another list", async () => {
    api.setPods(3);
    run.start({ timing: { watchMs: 1_100 } });
    await run.watching();
    api.setPods(4);
    await run.listed(4);
    const seen = api.watches.length;
    await run.watching(seen + 1);
    api.setPods(5);
    await run.listed(5);
    expect(api.lists).toHaveLength(1);
    const versions = api.watches.map((query) => query.get("resourceVersion"));
    expect(versions.slice(0, 2)).toEqual(["101", "102"]);
    expect(api.watches[0]?.get("timeoutSeconds")).toBe("2");
    expect(api.watches[0]?.get("allowWatchBookmarks")).toBe("true");
    expect(run.log).toEqual([]);
  });

  it("gets what happened between two watches", async () => {
    api.setPods(3);
    run.start();
    await run.watching();
    // The server drops the watch in the same moment in which the fleet grows.
    api.reset();
    api.setPods(30);
    await run.listed(30);
    expect(api.lists).toHaveLength(1);
  });

  it.each([1, 7, 64])("is read right when it comes in pieces of %i bytes", async (pieceBytes) => {
    api.pieceBytes = pieceBytes;
    api.setPods(5);
    run.start();
    await run.listed(5);
    await run.watching();
    api.setPods(9);
    await run.listed(9);
    expect(run.log).toEqual([]);
  });

  it("moves on by bookmarks, so that old versions do not matter", async () => {
    api.setPods(3);
    run.start({ timing: { watchMs: 1_100 } });
    await run.watching();
    api.bookmark();
    api.compact();
    await run.watching(2);
    expect(api.watches.at(-1)?.get("resourceVersion")).toBe("151");
    api.setPods(4);
    await run.listed(4);
    expect(api.lists).toHaveLength(1);
  });

  it.each(["status", "stream"] as const)(
    "that would go on too far back (410 as %s) is begun anew with a list",
    async (expiry) => {
      api.expiry = expiry;
      api.setPods(3);
      run.start();
      await run.watching();
      api.hang(); // so that the watcher misses what comes
      api.setPods(8);
      api.compact();
      api.recover();
      api.endWatches();
      await run.listed(8);
      expect(api.lists.length).toBe(2);
      // Not from the cache, which may be older than what was too old.
      expect(api.lists[1]?.has("resourceVersion")).toBe(false);
      await run.watching();
      api.setPods(9);
      await run.listed(9);
    },
  );

  it("ends and is begun anew with a list when an event makes no sense", async () => {
    api.setPods(3);
    run.start();
    await run.watching();
    api.sendRaw("{ this is no JSON\n");
    await until("it lists again", WITHIN_MS, () => api.lists.length === 2);
    await run.watching(2);
    api.setPods(4);
    await run.listed(4);
    expect(run.told).not.toContain(0);
  });

  it("ends and is begun anew with a list when the server reports an error of its own", async () => {
    api.setPods(3);
    run.start();
    await run.watching();
    api.sendRaw('{"type":"ERROR","object":{"kind":"Status","code":500,"message":"etcd"}}\n');
    await until("it lists again", WITHIN_MS, () => api.lists.length === 2);
  });
});

describe("the token of the service account", () => {
  it("is read again for every request", async () => {
    api.setPods(2);
    run.start();
    await run.watching();
    api.rotateToken("second");
    api.endWatches();
    await run.watching(2);
    expect(api.refused).toBe(0);
  });

  it("is read again after 401, and the pods are kept meanwhile", async () => {
    api.setPods(2);
    run.start();
    await run.watching();
    api.rotateToken("second", false);
    api.reset();
    await until("two requests were refused", WITHIN_MS, () => api.refused >= 2);
    expect(run.told.at(-1)).toBe(2);
    api.rotateToken("second");
    await run.watching(2);
    api.setPods(3);
    await run.listed(3);
    expect(api.lists).toHaveLength(1);
  });
});
