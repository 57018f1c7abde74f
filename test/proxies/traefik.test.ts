/**
 * Traefik is not run: its documented request form is sent to a real sidecar instead.
 *
 * ForwardAuth sends GET to `address` with X-Forwarded-Method, -Proto, -Host, -Uri and -For set and
 * all headers of the client, and hands back every answer that is not 2xx.
 */
import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { type Sidecar, startSidecar, stopSidecars } from "../support/sidecar.ts";
import { documentedPolicies, recipeFile } from "./recipe.ts";

const recipe = parse(recipeFile("traefik.md", "dynamic.yaml"));
const { forwardAuth } = recipe.http.middlewares.aliquot;
const address = new URL(forwardAuth.address);

let sidecar: Sidecar;

beforeAll(async () => {
  sidecar = await startSidecar({
    limits: [
      "  - { name: login-per-address, rate: 1/h, burst: 2 }",
      "  - { name: api-per-key, rate: 1/h, burst: 2 }",
    ].join("\n"),
    extra: documentedPolicies(),
  });
});

afterAll(stopSidecars);

interface Asked {
  readonly status: number | undefined;
  readonly retryAfter: string | undefined;
  readonly body: string;
}

/**
 * What Traefik sends for a request: with `trustForwardHeader: false` its own headers displace those
 * of the same names, and X-Forwarded-For is the peer alone, not appended to what was there.
 */
function ask(
  method: string,
  uri: string,
  peer: string,
  ofClient: Readonly<Record<string, string>> = {},
): Promise<Asked> {
  const headers = {
    ...ofClient,
    "X-Forwarded-Method": method,
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Host": "shop.example",
    "X-Forwarded-Uri": uri,
    "X-Forwarded-For": peer,
  };
  const to = { host: "127.0.0.1", port: sidecar.httpPort, path: address.pathname, headers };
  return new Promise((resolve, reject) => {
    request(to, (res) => {
      let body = "";
      res.setEncoding("utf8").on("data", (text: string) => {
        body += text;
      });
      res.once("end", () => {
        resolve({ status: res.statusCode, retryAfter: res.headers["retry-after"], body });
      });
    })
      .once("error", reject)
      .end();
  });
}

describe("Traefik's ForwardAuth", () => {
  it("asks at the loopback port, where the sidecar listens by default", () => {
    expect(address.host).toBe("127.0.0.1:8790");
  });

  it("writes its headers itself, so a client's are worth nothing", async () => {
    expect(forwardAuth.trustForwardHeader).toBe(false);
    const forged = {
      "X-Original-URI": "/elsewhere",
      "X-Original-Method": "GET",
      "X-RateLimit-Deny-Status": "403",
    };
    const uri = "/api/login?policy=api&x=/v1/forward/@api";
    const statuses: unknown[] = [];
    for (let i = 0; i < 3; i += 1) {
      statuses.push((await ask("POST", uri, "198.51.100.1", forged)).status);
    }
    expect(statuses).toEqual([200, 200, 403]);
  });

  it("gets 200 or 429 by policy, key and client address", async () => {
    const login = () => ask("POST", "/api/login?next=%2F", "203.0.113.7");
    expect([(await login()).status, (await login()).status]).toEqual([200, 200]);
    const denied = await login();
    expect([denied.status, denied.retryAfter]).toEqual([429, "3600"]);
    expect(JSON.parse(denied.body)).toMatchObject({ "violated-policies": ["login-per-address"] });
    expect((await ask("POST", "/api/login", "203.0.113.8")).status).toBe(200);
    expect((await ask("GET", "/api/login", "203.0.113.7")).status).toBe(200);
    expect((await ask("GET", "/api/x", "203.0.113.7", { "X-Api-Key": "k" })).status).toBe(200);
  });

  it("leaves its decisions and what no policy matched in the metrics", async () => {
    const before = await sidecar.metrics();
    expect((await ask("GET", "/elsewhere", "203.0.113.7")).status).toBe(200);
    await ask("GET", "/api/y", "203.0.113.7", { "X-Api-Key": "m" });
    const after = await sidecar.metrics();
    const grown = (name: string): number => (after.get(name) ?? 0) - (before.get(name) ?? 0);
    expect(grown("aliquot_forward_unmatched_total")).toBe(1);
    expect(grown('aliquot_decision_duration_seconds_count{transport="forward"}')).toBe(1);
    expect(grown('aliquot_decision_duration_seconds_count{transport="http"}')).toBe(0);
  });
});
