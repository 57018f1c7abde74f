/** Puts the listeners together: none by accident open to other machines, none twice. */
import { type Address, formatAddress, isLoopback } from "./address.ts";
import type { ListenConfig } from "./config.ts";
import type { FileListen } from "./file-shape.ts";
import type { Findings } from "./findings.ts";

export function resolveListen(listen: FileListen, findings: Findings): ListenConfig {
  const { http, grpc, resp, ops } = listen;
  if (http.socket === undefined && http.tcp === undefined) {
    findings.add(["listen", "http"], "has no listener; give a socket, a TCP address or both");
  }
  for (const door of ["http", "grpc", "resp"] as const) {
    const { tcp } = listen[door];
    if (tcp === undefined || isLoopback(tcp) || listen.allow_remote) continue;
    findings.add(
      ["listen", door, "tcp"],
      "can be reached from other machines, and nobody is asked who they are; " +
        "use 127.0.0.1, or set listen.allow_remote: true",
    );
  }
  if (collides(http.tcp, ops)) {
    findings.add(["listen", "ops"], "needs another port than listen.http.tcp");
  }
  for (const [other, address] of [
    ["listen.http.tcp", http.tcp],
    ["listen.ops", ops],
  ] as const) {
    if (!collides(grpc.tcp, address)) continue;
    findings.add(["listen", "grpc", "tcp"], `needs another port than ${other}`);
  }
  for (const [other, address] of [
    ["listen.http.tcp", http.tcp],
    ["listen.grpc.tcp", grpc.tcp],
    ["listen.ops", ops],
  ] as const) {
    if (!collides(resp.tcp, address)) continue;
    findings.add(["listen", "resp", "tcp"], `needs another port than ${other}`);
  }
  for (const [door, other] of [
    ["grpc", "http"],
    ["resp", "http"],
    ["resp", "grpc"],
  ] as const) {
    const { socket } = listen[door];
    if (socket === undefined || socket !== listen[other].socket) continue;
    findings.add(["listen", door, "socket"], `needs another path than listen.${other}.socket`);
  }
  return {
    http: { socket: http.socket, tcp: http.tcp },
    grpc: { socket: grpc.socket, tcp: grpc.tcp },
    resp: { socket: resp.socket, tcp: resp.tcp },
    ops,
    socketMode: listen.socket_mode,
    allowRemote: listen.allow_remote,
  };
}

/** Both cannot be bound: the same port on the same address, or on every address. */
function collides(a: Address | undefined, b: Address | undefined): boolean {
  if (a === undefined || b === undefined || a.port !== b.port || a.port === 0) return false;
  const everywhere = [a, b].some((address) => ["0.0.0.0", "::"].includes(address.host));
  return everywhere || formatAddress(a) === formatAddress(b);
}
