/** The status page as a text: what browsers get of it, and what they are told to run. */
import { hash } from "node:crypto";
import { Script } from "node:vm";
import { describe, expect, it, onTestFinished } from "vitest";
import { listenHttp } from "../../src/server/listener.ts";
import { createOpsHandler, type OpsView } from "../../src/server/ops.ts";
import { prefersHtml, statusPage } from "../../src/server/status-page/page.ts";
import { type Answer, HttpClient } from "./http-client.ts";

const BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

/** The page needs nothing of the pod: its script asks for everything. */
async function index(accept: string | undefined, method = "GET"): Promise<Answer> {
  const handler = createOpsHandler({} as OpsView);
  const listener = await listenHttp(handler, { kind: "tcp", host: "127.0.0.1", port: 0 });
  const client = new HttpClient({ port: listener.port ?? 0 });
  onTestFinished(async () => {
    client.close();
    await listener.stop(100);
  });
  return client.send(method, "/", undefined, accept === undefined ? {} : { accept });
}

function inside(tag: string): string {
  const [, text] = new RegExp(`<${tag}>([\\s\\S]*?)</${tag}>`).exec(statusPage) ?? [];
  return text ?? "";
}

describe("the index of the ops listener", () => {
  it("is a page for browsers and a list of paths for everybody else", async () => {
    const page = await index(BROWSER);
    expect(page.headers["content-type"]).toBe("text/html; charset=utf-8");
    expect(page.text).toBe(statusPage);
    const list = await index("*/*");
    expect(list.headers["content-type"]).toBe("text/plain; charset=utf-8");
    expect(list.text).toContain("/metrics");
    expect([page.headers.vary, list.headers.vary]).toEqual(["Accept", "Accept"]);
  });

  it.each([
    [undefined, false],
    ["*/*", false],
    ["text/plain", false],
    ["text/html;q=0, */*", false],
    ["TEXT/HTML;level=1", true],
    [BROWSER, true],
  ])("for Accept %j: %s", (accept, isPage) => {
    expect(prefersHtml(accept)).toBe(isPage);
  });

  it("answers HEAD with the length of the page and no body", async () => {
    const { headers, text } = await index(BROWSER, "HEAD");
    expect([headers["content-length"], text]).toEqual([String(statusPage.length), ""]);
  });
});

describe("the status page", () => {
  it("lets a browser run its own script and style and nothing else", async () => {
    const { headers } = await index(BROWSER);
    const policy = new Map(
      String(headers["content-security-policy"])
        .split("; ")
        .map((each) => [each.split(" ")[0], each.split(" ").slice(1).join(" ")]),
    );
    expect(Object.fromEntries(policy)).toEqual({
      "default-src": "'none'",
      "script-src": `'sha256-${hash("sha256", inside("script"), "base64")}'`,
      "style-src": `'sha256-${hash("sha256", inside("style"), "base64")}'`,
      "img-src": "data:",
      "connect-src": "'self'",
      "base-uri": "'none'",
      "form-action": "'none'",
      "frame-ancestors": "'none'",
    });
    expect(headers["x-content-type-options"]).toBe("nosniff");
  });

  it("is ASCII, has one script that compiles, and nothing that a policy would refuse", () => {
    expect(statusPage).not.toMatch(/[^\n\x20-\x7e]/);
    expect(new Script(inside("script"))).toBeInstanceOf(Script);
    expect(statusPage.match(/<script/g)).toHaveLength(1);
    expect(statusPage).not.toMatch(/\son[a-z]+=|\sstyle=|javascript:/i);
  });

  it("writes figures as text: it never turns one into markup", () => {
    const markup = /innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\b/;
    expect(inside("script")).not.toMatch(markup);
  });

  it("asks for nothing but /status, and names nothing outside", () => {
    const addresses = statusPage.match(/https?:\/\/[^\s'"]+/g) ?? [];
    expect([...new Set(addresses)]).toEqual(["http://www.w3.org/2000/svg"]);
    expect(inside("script").match(/fetch\([^,]*/g)).toEqual([
      'fetch("/status?history=" + known + limit',
    ]);
    expect(inside("style")).not.toMatch(/url\(|@import/);
  });

  it("stays small", () => {
    expect(statusPage.length).toBeLessThan(48_000);
  });
});
