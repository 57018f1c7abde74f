/** A fleet of real sidecars that a Kubernetes API server or a DNS server lists. */
import { expect } from "vitest";
import { until } from "../../fleet/until.ts";
import { offer } from "../daemon/load.ts";
import { type KubeApi, SERVICE } from "../support/kube-api.ts";
import { type Sidecar, type SidecarOptions, startSidecar } from "../support/sidecar.ts";

/** Membership and environment of a pod that this API server lists. */
export function listedBy(api: KubeApi): Pick<SidecarOptions, "extra" | "env"> {
  const { host, port } = api.address;
  const account = `service_account: ${api.serviceAccount}`;
  return {
    extra: `membership: { source: kubernetes, service: ${SERVICE}, ${account} }`,
    env: { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: `${port}` },
  };
}

export function startPods(count: number, options: SidecarOptions): Promise<Sidecar[]> {
  return Promise.all(Array.from({ length: count }, () => startSidecar(options)));
}

export async function everyPodCounts(
  pods: readonly Sidecar[],
  count: number,
  ms: number,
): Promise<void> {
  await until(`every pod counts ${count}`, ms, async () => {
    const live = await Promise.all(pods.map((pod) => pod.metric("aliquot_live_pods")));
    return live.every((each) => each === count);
  });
}

export function inFallback(pods: readonly Sidecar[], active: number): Promise<void> {
  return until(`fallback is ${active} in every pod`, 6_000, async () => {
    const states = await Promise.all(pods.map((pod) => pod.metric("aliquot_fallback_active")));
    return states.every((state) => state === active);
  });
}

/** Offers the same to every pod; what all of them admit, per second. */
export async function admittedPerSecond(
  pods: readonly Sidecar[],
  forMs: number,
  perSecond: number,
): Promise<number> {
  const begun = performance.now();
  const served = await Promise.all(
    pods.map((sidecar) => offer({ sidecar, limit: "api", key: "k", perSecond }, forMs)),
  );
  const allowed = served.reduce((sum, each) => sum + each.allowed, 0);
  expect(served.reduce((sum, each) => sum + each.failed, 0)).toBe(0);
  return (allowed * 1_000) / (performance.now() - begun);
}
