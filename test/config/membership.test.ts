import { describe, expect, it } from "vitest";
import { configOf, minimal } from "./loading.ts";

describe("the membership section", () => {
  it("finds the API server, the namespace and the token where Kubernetes puts them", () => {
    const lines = ["fleet: f", "redis: { url: redis://h }"];
    const text = minimal(...lines, "membership: { source: kubernetes, service: web }");
    const server = { KUBERNETES_SERVICE_HOST: "fd00::1", KUBERNETES_SERVICE_PORT: "6443" };
    const inCluster = configOf(text, { env: { ...server, POD_NAMESPACE: "shop" } });
    expect(inCluster.membership).toEqual({
      source: "kubernetes",
      service: "web",
      namespace: "shop",
      serviceAccount: "/var/run/secrets/kubernetes.io/serviceaccount",
      server: { host: "fd00::1", port: 6_443 },
      heartbeatUs: 1_000_000,
      timeoutUs: 5_000_000,
    });
    // Checking a file elsewhere needs no cluster.
    const own = minimal(
      ...lines,
      "membership: { source: kubernetes, service: web, namespace: pay, service_account: sa }",
    );
    expect(configOf(own, { path: "/etc/aliquot/a.yaml" }).membership).toMatchObject({
      namespace: "pay",
      serviceAccount: "/etc/aliquot/sa",
      server: undefined,
    });
  });

  it("takes a Service for DNS, short or whole, and a server to ask", () => {
    const lines = ["fleet: f", "redis: { url: redis://h }"];
    const text = minimal(...lines, "membership: { source: dns, service: web.shop.svc.local. }");
    expect(configOf(text).membership).toMatchObject({
      source: "dns",
      service: "web.shop.svc.local.",
      resolver: undefined,
    });
    const env = { ALIQUOT_MEMBERSHIP_SOURCE: "dns", ALIQUOT_MEMBERSHIP_SERVICE: "web" };
    const short = minimal(...lines, "membership: { resolver: '[fd00::a]:53' }");
    expect(configOf(short, { env }).membership).toMatchObject({
      service: "web",
      resolver: { host: "fd00::a", port: 53 },
    });
  });
});
