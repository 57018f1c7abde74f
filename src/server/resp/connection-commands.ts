/**
 * Commands that clients use to set a connection up. They are answered as Redis 7 without a password
 * does, so that its clients find what they expect.
 */
import type { ReplyWriter, RespVersion } from "./reply-writer.ts";
import type { Request } from "./request.ts";

/** What a connection has agreed upon with its client. */
export interface Session {
  readonly id: number;
  version: RespVersion;
  name: string;
  /** The client wants no more answers. */
  hasQuit: boolean;
}

/** The Redis whose manners these are; clients choose by it what they may say. */
const REDIS_VERSION = "7.0.0";

/** A name is kept for as long as its connection. */
const NAME_BYTES_MAX = 128;

export class ConnectionCommands {
  readonly #version: string;
  readonly #writer: ReplyWriter;

  /** @param version - Of the sidecar. */
  constructor(version: string, writer: ReplyWriter) {
    this.#version = version;
    this.#writer = writer;
  }

  ping(request: Request): void {
    if (request.count > 2) this.wrongNumber("ping");
    else if (request.count === 2) this.#writer.bulk(request.slice(1));
    else this.#writer.simple("PONG");
  }

  echo(request: Request): void {
    if (request.count !== 2) this.wrongNumber("echo");
    else this.#writer.bulk(request.slice(1));
  }

  quit(session: Session): void {
    this.#writer.simple("OK");
    session.hasQuit = true;
  }

  select(request: Request): void {
    if (request.count !== 2) this.wrongNumber("select");
    else if (Number.isNaN(request.wholeNumber(1))) {
      this.#writer.error("ERR value is not an integer or out of range");
    } else if (request.wholeNumber(1) !== 0) {
      this.#writer.error("ERR DB index is out of range; there is 0 only");
    } else this.#writer.simple("OK");
  }

  /** There is no password: the mode of the socket says who may connect. */
  auth(request: Request): void {
    if (request.count === 3) this.#writer.simple("OK");
    else if (request.count === 2) {
      this.#writer.error(
        "ERR AUTH <password> called without any password configured for the default user. " +
          "Are you sure your configuration is correct?",
      );
    } else this.wrongNumber("auth");
  }

  /** `HELLO [2|3 [AUTH username password] [SETNAME name]]`. */
  hello(request: Request, session: Session): void {
    const asked = request.count > 1 ? request.wholeNumber(1) : session.version;
    if (Number.isNaN(asked)) {
      this.#writer.error("ERR Protocol version is not an integer or out of range");
      return;
    }
    if (asked !== 2 && asked !== 3) {
      this.#writer.error("NOPROTO unsupported protocol version; 2 and 3 are supported");
      return;
    }
    let name: string | undefined;
    for (let index = 2; index < request.count; ) {
      const left = request.count - index;
      if (request.isNamed(index, "auth") && left >= 3) index += 3;
      else if (request.isNamed(index, "setname") && left >= 2) {
        name = this.#readName(request, index + 1);
        if (name === undefined) return;
        index += 2;
      } else {
        this.#writer.error(`ERR Syntax error in HELLO option ${request.shown(index)}`);
        return;
      }
    }
    session.version = asked;
    if (name !== undefined) session.name = name;
    this.#welcome(session);
  }

  #welcome({ id, version }: Session): void {
    const writer = this.#writer;
    writer.map(7, version);
    for (const [field, value] of [
      ["server", "aliquot"],
      ["version", this.#version],
      ["proto", version],
      ["id", id],
      ["mode", "standalone"],
      ["role", "master"],
    ] as const) {
      writer.text(field);
      if (typeof value === "number") writer.integer(value);
      else writer.text(value);
    }
    writer.text("modules");
    writer.array(0);
  }

  client(request: Request, session: Session): void {
    const writer = this.#writer;
    if (request.count < 2) this.wrongNumber("client");
    else if (request.isNamed(1, "id") && request.count === 2) writer.integer(session.id);
    else if (request.isNamed(1, "getname") && request.count === 2) {
      if (session.name === "") writer.none(session.version);
      else writer.text(session.name);
    } else if (request.isNamed(1, "setname") && request.count === 3) {
      const name = this.#readName(request, 2);
      if (name === undefined) return;
      session.name = name;
      writer.simple("OK");
    } else if (request.isNamed(1, "setinfo") && request.count === 4) writer.simple("OK");
    else {
      writer.error(
        `ERR unknown subcommand or wrong number of arguments for ${request.shown(1)}; ` +
          "CLIENT takes ID, GETNAME, SETNAME name and SETINFO attribute value",
      );
    }
  }

  /** Undefined when it is none, which was answered then. */
  #readName(request: Request, index: number): string | undefined {
    const name = request.latin1(index);
    if (name.length <= NAME_BYTES_MAX && /^[!-~]*$/.test(name)) return name;
    this.#writer.error(
      "ERR Client names cannot contain spaces, newlines or special characters, " +
        `and have at most ${NAME_BYTES_MAX} bytes`,
    );
    return undefined;
  }

  /** As much as clients look for before they send more. */
  info(): void {
    const lines = [
      "# Server",
      `redis_version:${REDIS_VERSION}`,
      "server_name:aliquot",
      `aliquot_version:${this.#version}`,
      "redis_mode:standalone",
      "# Persistence",
      "loading:0",
      "# Replication",
      "role:master",
      "# Cluster",
      "cluster_enabled:0",
    ];
    this.#writer.text(lines.map((line) => `${line}\r\n`).join(""));
  }

  wrongNumber(name: string): void {
    this.#writer.error(`ERR wrong number of arguments for '${name}' command`);
  }
}
