/** Addresses of TCP listeners and servers, `host:port`. */

export interface Address {
  /** A name, an IPv4 address, or an IPv6 address without its brackets. */
  readonly host: string;
  /** 0 lets the system choose a free one. */
  readonly port: number;
}

export const ADDRESS_PATTERN: RegExp =
  /^(?:\[[0-9A-Fa-f:.]{2,45}\]|[0-9A-Za-z](?:[0-9A-Za-z._-]{0,252})):[0-9]{1,5}$/;

/** @returns The address, or undefined when the text is not `host:port` with a port up to 65535. */
export function parseAddress(text: string): Address | undefined {
  if (!ADDRESS_PATTERN.test(text)) return undefined;
  const colon = text.lastIndexOf(":");
  const port = Number(text.slice(colon + 1));
  if (port > 65_535) return undefined;
  return { host: text.slice(0, colon).replace(/^\[|\]$/g, ""), port };
}

export function formatAddress(address: Address): string {
  return address.host.includes(":")
    ? `[${address.host}]:${address.port}`
    : `${address.host}:${address.port}`;
}

/** Only this machine (or pod) can reach the address. Other names than localhost are not trusted. */
export function isLoopback(address: Address): boolean {
  const host = address.host.toLowerCase();
  return host === "localhost" || host === "::1" || /^127(?:\.[0-9]{1,3}){3}$/.test(host);
}

/** The address to call from this machine for a listener that may be bound to every interface. */
export function reachable(address: Address): Address {
  if (address.host === "0.0.0.0") return { host: "127.0.0.1", port: address.port };
  if (address.host === "::") return { host: "::1", port: address.port };
  return address;
}
