/** Ports for servers that tests start. */
import { type AddressInfo, createServer } from "node:net";

const givenPorts = new Set<number>();

/** A port that was free a moment ago, and is given only once: sidecars start side by side. */
export async function freePort(): Promise<number> {
  for (;;) {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    if (givenPorts.has(port)) continue;
    givenPorts.add(port);
    return port;
  }
}
