/** The few lines that a person sees when the sidecar has started: where it is, what to try. */

export interface Greeting {
  readonly version: string;
  readonly fleet: string;
  readonly store: "embedded" | "redis";
  /** Processes that decide; 1 when left out. */
  readonly workers?: number;
  readonly limitNames: readonly string[];
  /** `host:port`, undefined when not there. */
  readonly httpTcp?: string;
  /** Path of the Unix socket, undefined when not there. */
  readonly httpSocket?: string;
  /** `host:port` and path of the gRPC listeners, undefined when not there. */
  readonly grpcTcp?: string;
  readonly grpcSocket?: string;
  /** The same of the listeners for the Redis protocol. */
  readonly respTcp?: string;
  readonly respSocket?: string;
  readonly ops: string | undefined;
}

/** @returns At most ten lines, each with its line feed. */
export function greetingLines(greeting: Greeting): string {
  const { version, fleet, store, limitNames, httpTcp, httpSocket, ops } = greeting;
  const { grpcTcp, grpcSocket, respTcp, respSocket } = greeting;
  const limits = limitNames.length === 1 ? "1 limit" : `${limitNames.length} limits`;
  const { workers = 1 } = greeting;
  const several = workers > 1 ? `, ${workers} workers` : "";
  const lines = [`aliquot ${version}: fleet ${fleet}, ${store} store, ${limits}${several}`];
  if (httpTcp !== undefined) lines.push(`  checks on  http://${httpTcp}`);
  if (httpSocket !== undefined) lines.push(`  checks on  ${httpSocket} (HTTP on a Unix socket)`);
  if (grpcSocket !== undefined) lines.push(`  Envoy on   ${grpcSocket} (gRPC on a Unix socket)`);
  if (grpcTcp !== undefined) lines.push(`  Envoy on   ${grpcTcp} (gRPC)`);
  const resp = [respSocket, respTcp].filter((address) => address !== undefined);
  if (resp.length > 0) lines.push(`  checks on  ${resp.join(" and ")} (Redis protocol)`);
  if (ops !== undefined) lines.push(`  ops on     http://${ops} (status page, /readyz, /metrics)`);
  lines.push(`Try: ${curlLine(greeting)}`);
  return lines.map((line) => `${line}\n`).join("");
}

function curlLine({ httpTcp, httpSocket, limitNames }: Greeting): string {
  const path = `/v1/check?limit=${limitNames[0] ?? ""}&key=alice`;
  if (httpTcp !== undefined) return `curl -s 'http://${httpTcp}${path}'`;
  return `curl -s --unix-socket ${httpSocket ?? ""} 'http://localhost${path}'`;
}
