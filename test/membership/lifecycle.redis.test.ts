/**
 * Pods that start, stand still, restart and are deleted while Kubernetes or DNS lists them: what
 * holds for a fleet of heartbeats must hold here too.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../fleet/until.ts";
import { aliquot } from "../cli/listening-io.ts";
import { ConfigMap } from "../daemon/config-map.ts";
import { offer, type Served } from "../daemon/load.ts";
import { burstOf, configStatus, untilReloads } from "../daemon/reloading.ts";
import { StoredState } from "../daemon/stored.ts";
import { DnsServer } from "../support/dns-server.ts";
import { KubeApi } from "../support/kube-api.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import {
  type Sidecar,
  type SidecarOptions,
  startSidecar,
  stopSidecars,
} from "../support/sidecar.ts";
import { admittedPerSecond, everyPodCounts, inFallback, listedBy } from "./listed-pods.ts";

/** Sidecars and their load share two cores with other tests. */
const PATIENCE = { timeout: 120_000 };
const NAME = "web.shop.svc.cluster.local";
const RATE = 100;
const MARGIN = 0.5;
const LIMITS =
  `  - { name: api, rate: ${RATE}/s, burst: ${RATE}, ` +
  `fallback: { margin: ${MARGIN}, max_pods: 2 } }`;

const SOURCES = ["kubernetes", "dns"] as const;
type Source = (typeof SOURCES)[number];

let redis: RedisServer;
let api: KubeApi;
let dns: DnsServer;

beforeEach(async () => {
  redis = await startRedis();
  api = new KubeApi();
  await api.start();
  dns = new DnsServer();
  await dns.start();
});

afterEach(async () => {
  await stopSidecars();
  await api.dispose();
  await dns.dispose();
  await redis.dispose();
});

/** So many pods are listed, whichever source is asked. */
function list(pods: number): void {
  api.setPods(pods);
  dns.set(NAME, pods);
}

function listedByDns(): Pick<SidecarOptions, "extra"> {
  const resolver = `resolver: 127.0.0.1:${dns.port}`;
  return { extra: `membership: { source: dns, service: ${NAME}., ${resolver} }` };
}

const membershipOf = (source: Source): Pick<SidecarOptions, "extra" | "env"> =>
  source === "dns" ? listedByDns() : listedBy(api);

const start = (source: Source, more: Partial<SidecarOptions> = {}): Promise<Sidecar> =>
  startSidecar({ limits: LIMITS, redisUrl: redis.url, ...membershipOf(source), ...more });

describe.each(SOURCES)("O14, O15, O16 a ConfigMap of a fleet that is listed by %s", (source) => {
  it("is put in force or refused without a bucket refilled or a pod forgotten", async () => {
    list(7);
    let mount: ConfigMap | undefined;
    const limits = (burst: number): string =>
      `  - { name: kept, rate: 1/h, burst: 30, mode: hybrid }\n` +
      `  - { name: api, rate: 1/h, burst: ${burst} }`;
    const pod = await start(source, {
      limits: limits(5),
      layOut: (text, folder) => {
        mount = new ConfigMap(folder);
        mount.swap({ "aliquot.yaml": text });
        return mount.path("aliquot.yaml");
      },
    });
    await everyPodCounts([pod], 7, 8_000);
    const watches = source === "kubernetes" ? 1 : 0;
    await until("the watch is open", 8_000, () => api.openWatches === watches);
    // In debt, out of which a bucket would come only by a refill.
    await pod.report("kept", "k", 40);
    expect((await pod.check("kept", "k")).allowed).toBe(false);
    const { extra = "" } = membershipOf(source);
    const asked = [api.lists.length, api.watches.length];
    const swap = (text: string): void => mount?.swap({ "aliquot.yaml": text });

    for (const burst of [6, 7, 8]) {
      swap(pod.yaml({ limits: limits(burst), extra }));
      await untilReloads(pod, { ok: burst - 5 });
    }
    const { hash } = await configStatus(pod);
    swap(pod.yaml({ limits: limits(9), extra }).replace("burst: 9", "burts: 9"));
    await untilReloads(pod, { ok: 3, failed: 1 });

    expect((await configStatus(pod)).hash).toBe(hash);
    expect(await pod.metric("aliquot_live_pods")).toBe(7);
    expect(await burstOf(pod, "api")).toBe(8);
    expect((await pod.check("kept", "k")).allowed).toBe(false);
    // The source was not started anew, and goes on.
    expect([api.lists.length, api.watches.length]).toEqual(asked);
    list(9);
    await everyPodCounts([pod], 9, 8_000);
  });
});

describe.each(SOURCES)("O22, O23 a sidecar that %s lists", (source) => {
  it(
    "starts while neither Redis nor its source answers, and joins when they do",
    PATIENCE,
    async () => {
      redis.pause();
      api.hang();
      dns.silent = true;
      const pod = await start(source);
      expect(await pod.probe("/livez")).toBe(200);
      expect(await pod.probe("/startupz")).toBe(200);
      // Nobody has told it how many there are, so it counts on as many as the limit says.
      await admittedPerSecond([pod], 1_000, RATE);
      const alone = await admittedPerSecond([pod], 2_000, RATE);
      expect(alone).toBeLessThanOrEqual((1.1 * MARGIN * RATE) / 2);
      expect(alone).toBeGreaterThan((0.6 * MARGIN * RATE) / 2);

      list(4);
      api.recover();
      api.reset(); // or the list that hangs would be given up after ten seconds
      dns.silent = false;
      redis.resume();
      await inFallback([pod], 0);
      await everyPodCounts([pod], 4, 10_000);
    },
  );

  it(
    "leaves no socket and no question behind, and a crash stops no restart",
    PATIENCE,
    async () => {
      list(2);
      // The same pod and the same volume, as when a container restarts within its pod.
      const socket = join(api.serviceAccount, "http.sock");
      const first = await start(source, { podId: "pod-a", socket });
      await first.crash();
      expect(existsSync(socket)).toBe(true);
      const again = await start(source, { podId: "pod-a", socket });
      expect((await again.askSocket("api", "k")).status).toBe(200);
      expect(await again.terminate()).toEqual({ code: 0, signal: null });
      expect(existsSync(socket)).toBe(false);
    },
  );
});

describe("a container that restarts within its pod", () => {
  it("is one pod, not two, and brings no burst of its own", PATIENCE, async () => {
    list(2);
    const stored = new StoredState(redis);
    try {
      const stays = await start("kubernetes", { podId: "uid-0" });
      let restarts = await start("kubernetes", { podId: "uid-1" });
      await everyPodCounts([stays, restarts], 2, 5_000);
      await Promise.all([stays, restarts].map((pod) => saturate(pod, 1_500)));

      const begun = performance.now();
      const served: Promise<Served>[] = [saturate(stays, 3_000)];
      for (let round = 0; round < 2; round += 1) {
        await restarts.crash();
        restarts = await start("kubernetes", { podId: "uid-1" });
        served.push(saturate(restarts, 800));
        await served.at(-1);
      }
      const counts = await Promise.all(served);
      const seconds = (performance.now() - begun) / 1_000;
      const admitted = counts.reduce((sum, { allowed }) => sum + allowed, 0);
      // What a crash had not told is lost: at most what one pod may hold, each time.
      expect(admitted).toBeLessThanOrEqual(RATE * seconds + 0.35 * RATE);
      expect(counts.reduce((sum, { failed }) => sum + failed, 0)).toBe(0);
      // Sooner than a pod that is gone is dropped: those that went before are known by their name.
      const pods = async (): Promise<(string | undefined)[]> =>
        (await stored.members()).map((member) => member.split("/")[0]).sort();
      await until("only the last one is a member", 4_000, async () => (await pods()).length === 2);
      expect(await pods()).toEqual(["uid-0", "uid-1"]);
      await everyPodCounts([stays, restarts], 2, 10_000);
    } finally {
      stored.close();
    }
  });
});

/** Offers more than a pod's share of the one key. */
function saturate(sidecar: Sidecar, forMs: number): Promise<Served> {
  return offer({ sidecar, limit: "api", key: "k", perSecond: 0.8 * RATE }, forMs);
}

describe("a sidecar that stands still for two seconds", () => {
  it("admits no burst when it goes on, and was counted meanwhile", PATIENCE, async () => {
    list(2);
    const [steady, stalls] = await Promise.all([start("kubernetes"), start("kubernetes")]);
    await everyPodCounts([steady, stalls], 2, 5_000);
    // The burst is spent, so that from here on the fleet has what is refilled.
    await Promise.all([steady, stalls].map((pod) => saturate(pod, 2_000)));
    const begun = performance.now();
    const loads = [steady, stalls].map((pod) => saturate(pod, 4_000));
    stalls.signal("SIGSTOP");
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    expect(await steady.metric("aliquot_live_pods")).toBe(2);
    stalls.signal("SIGCONT");
    const woke = performance.now();
    // Requests that queued meanwhile are all asked at once.
    const counts = await Promise.all(loads);
    const seconds = (performance.now() - begun) / 1_000;
    expect(performance.now() - woke).toBeLessThan(15_000);
    const admitted = counts.reduce((sum, { allowed }) => sum + allowed, 0);
    expect(counts.reduce((sum, { failed }) => sum + failed, 0)).toBe(0);
    expect(admitted).toBeLessThanOrEqual(RATE * seconds + 0.3 * RATE);
    expect(await stalls.probe("/livez")).toBe(200);
    await inFallback([steady, stalls], 0);
  });
});

describe("a pod that is deleted while Redis is away", () => {
  it("ends with 0, and the others keep below the margin and go on", PATIENCE, async () => {
    list(3);
    const pods = await Promise.all([1, 2, 3].map(() => start("kubernetes")));
    await everyPodCounts(pods, 3, 5_000);
    await redis.stop();
    await inFallback(pods, 1);
    await admittedPerSecond(pods, 1_500, RATE);

    const [deleted, ...others] = pods as [Sidecar, Sidecar, Sidecar];
    const load = admittedPerSecond(others, 4_000, RATE);
    // While it terminates it may still answer and is listed; then its endpoint goes.
    const exit = deleted.terminate();
    api.setPods(2);
    expect(await exit).toEqual({ code: 0, signal: null });
    // What a pod that is gone might have used is not given away while nobody can tell.
    expect(await load).toBeLessThanOrEqual((1.1 * MARGIN * RATE * 2) / 3);

    await redis.start();
    await inFallback(others, 0);
    await everyPodCounts(others, 2, 10_000);
  });
});

describe("a Job", () => {
  it(
    "waits for its sidecar, and what it spent is told when it ends at once",
    PATIENCE,
    async () => {
      list(1);
      const stored = new StoredState(redis);
      try {
        const limits = "  - { name: api, rate: 1/d, burst: 1000 }";
        const sidecar = await start("kubernetes", { limits, unready: true });
        const waited = await aliquot(["wait", "--timeout", "20s", "--config", sidecar.config]);
        expect(waited).toEqual({ code: 0, stdout: "", stderr: "" });
        for (let i = 0; i < 9; i += 1) await sidecar.report("api", "k", 1);
        expect(await sidecar.terminate()).toEqual({ code: 0, signal: null });
        expect(await stored.missing("api", "k")).toBeCloseTo(9, 2);
        expect(await stored.members()).toEqual([]);
        await until("the watch is closed", 5_000, () => api.openWatches === 0);
      } finally {
        stored.close();
      }
    },
  );

  it("that is over before anything answers its sidecar is not kept by it", PATIENCE, async () => {
    redis.pause();
    api.hang();
    const extra = `drain_timeout: 1s\n${listedBy(api).extra}`;
    const sidecar = await start("kubernetes", { extra, unready: true });
    await until("it lives", 20_000, async () => (await sidecar.probe("/livez")) === 200);
    const begun = performance.now();
    expect(await sidecar.terminate()).toEqual({ code: 0, signal: null });
    expect(performance.now() - begun).toBeLessThan(10_000);
  });
});
