/** A network that a test can break: passes bytes on, or loses what the server answers. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

export class TcpProxy {
  port = 0;
  /** Replies are swallowed while this holds; requests still arrive. */
  losesReplies = false;
  private readonly target: number;
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();
  private readonly lost: (() => void)[] = [];

  constructor(target: number) {
    this.target = target;
    this.server = createServer((near) => this.join(near));
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    this.port = (this.server.address() as AddressInfo).port;
  }

  /** Resolves when a reply has been lost, that is, when the server has done its work. */
  nextLostReply(): Promise<void> {
    return new Promise((resolve) => this.lost.push(resolve));
  }

  /** Resets all connections. */
  cut(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private join(near: Socket): void {
    const far = connect(this.target, "127.0.0.1");
    for (const socket of [near, far]) {
      this.sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        this.sockets.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    near.on("data", (data) => far.write(data));
    far.on("data", (data) => {
      if (!this.losesReplies) near.write(data);
      else for (const resolve of this.lost.splice(0)) resolve();
    });
  }
}
