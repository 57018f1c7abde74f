/** The Kubernetes source and API servers that hang, reset, forbid and forget. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../fleet/until.ts";
import { KubeApi } from "../support/kube-api.ts";
import { SourceUnderTest, WITHIN_MS } from "./kube-source.ts";

let run: SourceUnderTest;
let api: KubeApi;

beforeEach(async () => {
  run = new SourceUnderTest();
  api = run.api;
  await api.start();
});

afterEach(() => run.dispose());

describe("an API server in trouble", () => {
  it("that hangs within a watch is left after the silence, and the pods are kept", async () => {
    api.setPods(3);
    run.start({ timing: { silenceMs: 500, answerWithinMs: 400 } });
    await run.watching();
    api.hang();
    api.setPods(30); // nobody hears of it
    await run.troubleTold();
    expect(run.log[0]).toMatch(
      /did not answer within 400 ms|nothing came on the watch within 500 ms/,
    );
    expect(run.told.at(-1)).toBe(3);
    api.recover();
    await run.listed(30);
    expect(run.log.at(-1)).toMatch(/^recovered/);
  });

  it("that hangs from the start costs nothing but its answer", async () => {
    api.setPods(3);
    api.hang();
    run.start({ timing: { answerWithinMs: 200 } });
    await run.troubleTold();
    expect(run.told).toEqual([]);
    expect(api.connections).toBeLessThanOrEqual(1);
    api.recover();
    await run.listed(3);
  });

  it("that resets the connection is found again", async () => {
    api.setPods(3);
    run.start();
    for (let i = 1; i <= 3; i += 1) {
      await run.watching(i);
      api.reset();
    }
    await run.watching(4);
    api.setPods(4);
    await run.listed(4);
    expect(api.lists).toHaveLength(1);
  });

  it("that forbids the request is told with what is missing, and asked again", async () => {
    api.failure = { status: 403 };
    run.start();
    await run.troubleTold();
    expect(run.log).toEqual([
      "failing: the API server answered 403: as the test wants it; " +
        "its role needs list and watch on endpointslices.discovery.k8s.io",
    ]);
    api.failure = undefined;
    api.setPods(2);
    await run.listed(2);
    expect(run.log.at(-1)).toBe("recovered: 2");
  });

  it("that never gets further than 410 is not asked without pause", async () => {
    api.failure = { status: 410 };
    run.start();
    await run.troubleTold();
    expect(run.log[0]).toMatch(/410/);
    api.failure = undefined;
    api.setPods(1);
    await run.listed(1);
  });

  it("that finds every version too old is not asked without pause", async () => {
    api.forgetsAll = true;
    api.setPods(2);
    run.start();
    await until("it has listed four times", WITHIN_MS, () => api.lists.length >= 4);
    const [first = 0] = api.askedAt;
    // The second list came at once, the others after a quarter and half a second.
    expect(performance.now() - first).toBeGreaterThanOrEqual(740);
    expect(run.told.at(-1)).toBe(2);
  });

  it("is given the time that it asks for", async () => {
    api.failure = { status: 429, headers: { "retry-after": "1" } };
    run.start();
    await until("it was asked again", WITHIN_MS, () => api.askedAt.length >= 2);
    const [first = 0, second = 0] = api.askedAt;
    expect(second - first).toBeGreaterThanOrEqual(990);
  });

  it("makes the listing count as out of reach after half a minute of failures", async () => {
    run.nowUs = 1_000_000;
    api.setPods(3);
    run.start();
    await run.watching();
    api.failure = { status: 500 };
    api.reset();
    await run.troubleTold();
    expect(run.told.at(-1)).toBe(3);
    run.nowUs += 30_000_000;
    await until("it is out of reach", WITHIN_MS, () => run.told.at(-1) === undefined);
    api.failure = undefined;
    await run.listed(3);
  });

  it("is not looked for outside a cluster, and that is said", async () => {
    run.start({ outside: true });
    await run.troubleTold();
    expect(run.log[0]).toMatch(/KUBERNETES_SERVICE_HOST is not set/);
  });

  it("cannot be asked without a service account, and that is said with the path", async () => {
    run.start({ serviceAccount: "/nowhere" });
    await run.troubleTold();
    expect(run.log[0]).toMatch(/cannot read \/nowhere\/.* automountServiceAccountToken/);
  });

  it("whose certificate another authority has signed is not believed", async () => {
    const other = new KubeApi();
    run.start({ serviceAccount: other.serviceAccount });
    await run.troubleTold();
    expect(run.log[0]).toMatch(/certificate|signature/);
    expect(api.lists).toHaveLength(0);
    await other.dispose();
  });
});

describe("a source that is stopped", () => {
  it("closes its watch and tells nothing more", async () => {
    api.setPods(3);
    run.start();
    await run.watching();
    run.stop();
    await until("the connection is closed", WITHIN_MS, () => api.connections === 0);
    const before = run.told.length;
    api.setPods(9);
    await new Promise((resolve) => setImmediate(resolve));
    expect(run.told).toHaveLength(before);
    expect(run.log).toEqual([]);
  });
});
