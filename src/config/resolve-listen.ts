/** Puts the listeners together: none by accident open to other machines, none twice. */
import { type Address, formatAddress, isLoopback } from "./address.ts";
import type { ListenConfig } from "./config.ts";
import type { FileListen } from "./file-shape.ts";
import type { Findings } from "./findings.ts";

export function resolveListen(listen: FileListen, findings: Findings): ListenConfig {
  const { http, ops } = listen;
  if (http.socket === undefined && http.tcp === undefined) {
    findings.add(["listen", "http"], "has no listener; give a socket, a TCP address or both");
  }
  if (http.tcp !== undefined && !isLoopback(http.tcp) && !listen.allow_remote) {
    findings.add(
      ["listen", "http", "tcp"],
      "can be reached from other machines, and nobody is asked who they are; " +
        "use 127.0.0.1, or set listen.allow_remote: true",
    );
  }
  if (http.tcp !== undefined && ops !== undefined && collides(http.tcp, ops)) {
    findings.add(["listen", "ops"], `needs another port than listen.http.tcp`);
  }
  return {
    http: { socket: http.socket, tcp: http.tcp },
    grpc: { socket: undefined, tcp: undefined },
    ops,
    socketMode: listen.socket_mode,
    allowRemote: listen.allow_remote,
  };
}

/** Both cannot be bound: the same port on the same address, or on every address. */
function collides(a: Address, b: Address): boolean {
  if (a.port !== b.port || a.port === 0) return false;
  const everywhere = [a, b].some((address) => ["0.0.0.0", "::"].includes(address.host));
  return everywhere || formatAddress(a) === formatAddress(b);
}
