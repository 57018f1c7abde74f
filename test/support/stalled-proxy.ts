/**
 * A network between a sidecar and its Redis that a test can spoil: stall (packets dropped, nobody
 * is told), delay, cut, or lead to another server while old connections stay where they are.
 */
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

export class StalledProxy {
  port = 0;
  /** Where new connections lead. Those that are open stay with their server. */
  target: number;
  /** Added to each direction, so that a round trip takes twice this. */
  delayMs = 0;
  private stalled = false;
  private refusing = false;
  private readonly server: Server;
  private readonly links = new Set<{ readonly near: Socket; readonly far: Socket }>();

  private constructor(target: number) {
    this.target = target;
    this.server = createServer((near) => this.join(near));
  }

  /** Listens on a free port of 127.0.0.1. @param target - A port of 127.0.0.1. */
  static async start(target: number): Promise<StalledProxy> {
    const proxy = new StalledProxy(target);
    await new Promise<void>((resolve) => proxy.server.listen(0, "127.0.0.1", resolve));
    proxy.port = (proxy.server.address() as AddressInfo).port;
    return proxy;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}/0`;
  }

  /** Open connections. */
  get connections(): number {
    return this.links.size;
  }

  /** Nothing passes any more, on old and new connections alike; none is closed. */
  stall(): void {
    this.stalled = true;
    for (const { near, far } of this.links) {
      near.pause();
      far.pause();
    }
  }

  /** What was held back passes now, as after a retransmission. */
  flow(): void {
    this.stalled = false;
    for (const { near, far } of this.links) {
      near.resume();
      far.resume();
    }
  }

  /** Resets all connections, and refuses new ones until `accept`. */
  refuse(): void {
    this.refusing = true;
    for (const { near, far } of this.links) {
      near.resetAndDestroy();
      far.destroy();
    }
  }

  accept(): void {
    this.refusing = false;
  }

  async close(): Promise<void> {
    this.refuse();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private join(near: Socket): void {
    near.on("error", () => {});
    if (this.refusing) {
      near.resetAndDestroy();
      return;
    }
    const far = connect(this.target, "127.0.0.1");
    const link = { near, far };
    this.links.add(link);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.setNoDelay(true);
      from.on("error", () => {});
      from.on("data", (data) => this.pass(data, to));
      from.on("close", () => {
        this.links.delete(link);
        to.destroy();
      });
      if (this.stalled) from.pause();
    }
  }

  private pass(data: Buffer, to: Socket): void {
    const write = (): void => {
      if (!to.destroyed) to.write(data);
    };
    // Timers of one delay fire in the order in which they were set, so bytes stay in order.
    if (this.delayMs === 0) write();
    else setTimeout(write, this.delayMs);
  }
}
