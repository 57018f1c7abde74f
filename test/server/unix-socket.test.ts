import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { type HttpListener, listenHttp } from "../../src/server/listener.ts";
import { HttpClient } from "./http-client.ts";

let directory: string;
let path: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "aq-"));
  path = join(directory, "http.sock");
});

afterEach(() => {
  rmSync(directory, { recursive: true, force: true });
});

async function listen(at: string, text = "hello", mode = 0o660): Promise<HttpListener> {
  const listener = await listenHttp((_req, res) => void res.end(text), {
    kind: "unix",
    path: at,
    mode,
  });
  onTestFinished(() => listener.stop(100));
  return listener;
}

async function ask(socketPath: string): Promise<string> {
  const client = new HttpClient({ socketPath });
  try {
    return (await client.get("/")).text;
  } finally {
    client.close();
  }
}

/** A process that serves on the path until it is killed and so leaves its socket behind. */
async function crashOn(at: string): Promise<void> {
  const script = `require("node:net").createServer().listen(${JSON.stringify(at)}, () => {
    process.stdout.write("up");
  })`;
  const child = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "pipe", "inherit"] });
  await once(child.stdout, "data");
  child.kill("SIGKILL");
  await once(child, "exit");
  expect(statSync(at).isSocket()).toBe(true);
}

describe("a Unix socket", () => {
  it("has its mode, leaves nothing else behind, and is gone after a stop", async () => {
    const listener = await listen(path, "hello", 0o606);
    expect(statSync(path).mode & 0o777).toBe(0o606);
    expect(readdirSync(directory)).toEqual(["http.sock"]);
    expect(await ask(path)).toBe("hello");
    await listener.stop(1_000);
    expect(readdirSync(directory)).toEqual([]);
  });

  it("gets the directories above it", async () => {
    const deep = join(directory, "run", "aliquot", "http.sock");
    await listen(deep);
    expect(await ask(deep)).toBe("hello");
  });

  it("is left alone at a stop when it has become another's", async () => {
    const first = await listen(path, "first");
    rmSync(path);
    await listen(path, "second");
    await first.stop(1_000);
    expect(await ask(path)).toBe("second");
  });

  it("has a path of at most 107 bytes", async () => {
    const name = (bytes: number): string =>
      join(directory, "d".repeat(bytes - directory.length - 1 - 2 - 1), "ab");
    await listen(name(107));
    expect(await ask(name(107))).toBe("hello");
    await expect(listen(name(108))).rejects.toThrow(
      `the socket path ${name(108)} has 108 bytes; a Unix socket takes at most 107`,
    );
    expect(existsSync(dirname(name(108)))).toBe(false);
  });

  it.each(["", "/", "a\0b"])("cannot be at %j", async (bad) => {
    await expect(listen(bad)).rejects.toThrow("is not the path of a socket");
  });

  it("names the path when the directory cannot be made", async () => {
    writeFileSync(join(directory, "file"), "");
    const below = join(directory, "file", "http.sock");
    await expect(listen(below)).rejects.toThrow(`cannot listen on the socket ${below}: `);
  });
});

describe("O22 a socket left by a crash", () => {
  it("(a) is replaced, time after time", async () => {
    await crashOn(path);
    const stale = statSync(path).ino;
    await listen(path);
    expect(await ask(path)).toBe("hello");
    expect(statSync(path).ino).not.toBe(stale);
    expect(readdirSync(directory)).toEqual(["http.sock"]);
  });

  it("(a) is replaced without a moment in which there is none", async () => {
    await crashOn(path);
    let seen = true;
    let watching = true;
    const watch = (): void => {
      seen &&= existsSync(path);
      if (watching) setImmediate(watch);
    };
    watch();
    await listen(path);
    watching = false;
    expect(seen).toBe(true);
  });

  it("(b) is not one while a live process answers on it", async () => {
    await listen(path, "first");
    await expect(listen(path, "second")).rejects.toThrow(
      `another process answers on the socket ${path}`,
    );
    expect(await ask(path)).toBe("first");
    expect(readdirSync(directory)).toEqual(["http.sock"]);
  });

  it("(b) is not one while a process that does not speak HTTP answers on it", async () => {
    const other = createServer().listen(path);
    await once(other, "listening");
    onTestFinished(() => void other.close());
    await expect(listen(path)).rejects.toThrow(path);
    expect(existsSync(path)).toBe(true);
  });

  it("(c) is not a regular file", async () => {
    writeFileSync(path, "precious");
    await expect(listen(path)).rejects.toThrow(`${path} is a regular file, not a socket`);
    expect(readFileSync(path, "utf8")).toBe("precious");
  });

  it("(c) is not a directory", async () => {
    mkdirSync(path);
    writeFileSync(join(path, "inside"), "precious");
    await expect(listen(path)).rejects.toThrow(`${path} is a directory, not a socket`);
    expect(readFileSync(join(path, "inside"), "utf8")).toBe("precious");
  });

  it("(c) is not a symbolic link, whatever it points to", async () => {
    symlinkSync(join(directory, "nowhere"), path);
    await expect(listen(path)).rejects.toThrow(`${path} is a symbolic link, not a socket`);
  });

  it("(d) is not left by a clean stop", async () => {
    const listener = await listen(path);
    await listener.stop(1_000);
    expect(existsSync(path)).toBe(false);
  });
});
