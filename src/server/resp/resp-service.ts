/** Answers requests of the Redis protocol; one for all connections of a listener. */

import { CheckCommands, type CheckParts, type Later } from "./check-commands.ts";
import { answerCommand } from "./command-command.ts";
import { COMMAND_NAMES } from "./commands.ts";
import { ConnectionCommands, type Session } from "./connection-commands.ts";
import { ReplyWriter } from "./reply-writer.ts";
import type { Request } from "./request.ts";

export interface RespParts extends CheckParts {
  /** Of the sidecar. */
  readonly version: string;
  /** A request met a bug. It was answered with an error. */
  readonly onUnexpectedError: (error: unknown) => void;
}

/** An error repeats so many characters of what a client sent. */
const REPEATED_MAX = 128;

const OWN_FAULT = "ERR the sidecar met a fault of its own";

type Answer = (request: Request, session: Session) => void;

export class RespService {
  /** Holds the replies that are written and not yet taken. */
  readonly writer: ReplyWriter = new ReplyWriter();
  readonly #parts: RespParts;
  readonly #checks: CheckCommands;
  readonly #others: ReadonlyMap<string, Answer>;

  constructor(parts: RespParts) {
    this.#parts = parts;
    const { writer } = this;
    this.#checks = new CheckCommands(parts, writer);
    const own = new ConnectionCommands(parts.version, writer);
    this.#others = new Map<string, Answer>([
      ["ping", (request) => own.ping(request)],
      ["echo", (request) => own.echo(request)],
      ["hello", (request, session) => own.hello(request, session)],
      ["auth", (request) => own.auth(request)],
      ["client", (request, session) => own.client(request, session)],
      ["select", (request) => own.select(request)],
      ["quit", (_request, session) => own.quit(session)],
      ["info", () => own.info()],
      ["command", (request, { version }) => answerCommand(request, writer, version)],
    ]);
  }

  /**
   * Answers one request: writes the reply, or promises it when it must wait. Never throws, and the
   * promise is never rejected.
   */
  answer(request: Request, session: Session): Later {
    const { writer } = this;
    const written = writer.length;
    try {
      const later = this.#answer(request, session);
      // Nothing else is written when a promise settles: what it wrote can be taken back whole.
      return later?.catch((error: unknown) => {
        this.#fail(error, 0);
        return writer.take();
      });
    } catch (error) {
      this.#fail(error, written);
      return undefined;
    }
  }

  /** @param written - What was written before the request that failed. */
  #fail(error: unknown, written: number): void {
    this.#parts.onUnexpectedError(error);
    this.writer.length = written;
    this.writer.error(OWN_FAULT);
  }

  #answer(request: Request, session: Session): Later {
    if (request.isNamed(0, "aliquot.check")) return this.#checks.check(request);
    if (request.isNamed(0, "cl.throttle")) return this.#checks.throttle(request);
    const answer = this.#others.get(request.latin1(0).toLowerCase());
    if (answer === undefined) this.#refuse(request);
    else answer(request, session);
    return undefined;
  }

  #refuse(request: Request): void {
    let repeated = "";
    for (let index = 1; index < request.count && repeated.length < REPEATED_MAX; index += 1) {
      repeated += `${request.shown(index)} `;
    }
    this.writer.error(
      `ERR unknown command ${request.shown(0)}, with args beginning with: ${repeated}; ` +
        `there are ${COMMAND_NAMES}`,
    );
  }
}
