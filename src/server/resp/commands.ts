/** The commands that are answered: what `COMMAND` tells of each, for clients and for people. */

interface Argument {
  readonly name: string;
  readonly type: "string" | "integer" | "key";
  readonly isOptional?: boolean;
}

export interface Command {
  /** In lower case. */
  readonly name: string;
  /** As Redis counts it, the name included; negative: at least so many. */
  readonly arity: number;
  readonly flags: readonly string[];
  /** Places of the first and the last key and the step between them; 0 for none. */
  readonly keys: readonly [number, number, number];
  readonly group: string;
  readonly summary: string;
  readonly args: readonly Argument[];
}

const NO_KEYS = [0, 0, 0] as const;

function text(name: string): Argument {
  return { name, type: "string" };
}

function number(name: string): Argument {
  return { name, type: "integer" };
}

function optional(argument: Argument): Argument {
  return { ...argument, isOptional: true };
}

const connection = { flags: ["fast", "loading", "stale"], keys: NO_KEYS, group: "connection" };
const limiter = { flags: ["write", "fast"], group: "module" };

export const COMMANDS: readonly Command[] = [
  {
    name: "aliquot.check",
    arity: -3,
    keys: [2, 2, 1],
    ...limiter,
    summary: "Spends a cost from a configured limit's bucket, if it is there.",
    args: [text("limit"), { name: "key", type: "key" }, optional(number("cost"))],
  },
  {
    name: "cl.throttle",
    arity: -5,
    keys: [1, 1, 1],
    ...limiter,
    summary: "Spends a quantity from the bucket of a limit that the caller brings.",
    args: [
      { name: "key", type: "key" },
      number("max_burst"),
      number("count"),
      number("period"),
      optional(number("quantity")),
    ],
  },
  {
    ...connection,
    name: "ping",
    arity: -1,
    summary: "Answers PONG, or the message.",
    args: [optional(text("message"))],
  },
  {
    ...connection,
    name: "echo",
    arity: 2,
    summary: "Answers the message.",
    args: [text("message")],
  },
  {
    ...connection,
    name: "hello",
    arity: -1,
    summary: "Tells about the server; chooses RESP2 or RESP3.",
    args: [optional(number("protover")), optional(text("options"))],
  },
  {
    ...connection,
    name: "auth",
    arity: -2,
    summary: "Accepted and ignored: the mode of the socket says who may connect.",
    args: [optional(text("username")), text("password")],
  },
  {
    ...connection,
    name: "client",
    arity: -2,
    summary: "ID, GETNAME, SETNAME and SETINFO of this connection.",
    args: [text("subcommand"), optional(text("values"))],
  },
  {
    ...connection,
    name: "select",
    arity: 2,
    summary: "Accepts database 0, the only one.",
    args: [number("index")],
  },
  {
    ...connection,
    name: "quit",
    arity: -1,
    summary: "Closes the connection.",
    args: [],
  },
  {
    ...connection,
    name: "info",
    arity: -1,
    group: "server",
    summary: "Tells a little about the server.",
    args: [optional(text("section"))],
  },
  {
    ...connection,
    name: "command",
    arity: -1,
    group: "server",
    summary: "Tells about these commands.",
    args: [optional(text("subcommand")), optional(text("names"))],
  },
];

export const COMMAND_NAMES: string = COMMANDS.map(({ name }) => name.toUpperCase()).join(", ");
