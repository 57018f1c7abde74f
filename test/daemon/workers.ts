/** Looks at the worker processes of a sidecar, and asks each of them. */
import { readFileSync } from "node:fs";
import { request } from "node:http";
import type { Sidecar } from "../support/sidecar.ts";

/** Processes that this one has forked and that have not ended. */
export function workersOf(pid: number): readonly number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1");
  return children.trim().split(" ").filter(Boolean).map(Number);
}

export function isAlive(pid: number): boolean {
  try {
    // A process that has ended and that nobody has asked about is none.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "latin1"));
  } catch {
    return false;
  }
}

export interface Reply {
  readonly status: number;
  readonly body: string;
}

/** Asks on a connection of its own, and so another worker each time. */
export function askAnew(sidecar: Sidecar, path: string): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath: sidecar.socket, path, agent: false, timeout: 5_000 });
    asked.on("response", (incoming) => {
      let body = "";
      incoming.setEncoding("utf8");
      incoming.on("data", (text: string) => {
        body += text;
      });
      incoming.on("end", () => resolve({ status: incoming.statusCode ?? 0, body }));
      incoming.on("error", reject);
    });
    asked.on("timeout", () => asked.destroy(new Error("no answer within 5 s")));
    asked.on("error", reject);
    asked.end();
  });
}
