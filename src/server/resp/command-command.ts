/** `COMMAND` and its subcommands, in the shapes of Redis 7. */
import { COMMANDS, type Command } from "./commands.ts";
import type { ReplyWriter, RespVersion } from "./reply-writer.ts";
import type { Request } from "./request.ts";

/** No command is of Redis; what is asked for is since when there is one. */
const SINCE = "1.0.0";

/** Parts of a command's entry that are empty for every command here. */
const EMPTY_PARTS = ["categories", "tips", "key specifications", "subcommands"];

export function answerCommand(request: Request, writer: ReplyWriter, version: RespVersion): void {
  if (request.count === 1) writeEntries(COMMANDS, writer, version);
  else if (request.isNamed(1, "count") && request.count === 2) writer.integer(COMMANDS.length);
  else if (request.isNamed(1, "list") && request.count === 2) {
    writer.array(COMMANDS.length);
    for (const { name } of COMMANDS) writer.text(name);
  } else if (request.isNamed(1, "docs")) {
    const named = namedIn(request).filter((command) => command !== undefined);
    writer.map(named.length, version);
    for (const command of named) writeDocs(command, writer, version);
  } else if (request.isNamed(1, "info")) writeEntries(namedIn(request), writer, version);
  else {
    const shown = request.shown(1);
    writer.error(
      `ERR unknown subcommand or wrong number of arguments for ${shown}; ` +
        "COMMAND takes COUNT, LIST, DOCS [name ...] and INFO [name ...]",
    );
  }
}

/** The commands named from argument 2 on; all when none is named. */
function namedIn(request: Request): readonly (Command | undefined)[] {
  if (request.count === 2) return COMMANDS;
  return Array.from({ length: request.count - 2 }, (_, index) =>
    COMMANDS.find(({ name }) => request.isNamed(index + 2, name)),
  );
}

function writeEntries(
  commands: readonly (Command | undefined)[],
  writer: ReplyWriter,
  version: RespVersion,
): void {
  writer.array(commands.length);
  for (const command of commands) {
    if (command === undefined) writer.noArray(version);
    else writeEntry(command, writer, version);
  }
}

function writeEntry(command: Command, writer: ReplyWriter, version: RespVersion): void {
  writer.array(6 + EMPTY_PARTS.length);
  writer.text(command.name);
  writer.integer(command.arity);
  writer.set(command.flags.length, version);
  for (const flag of command.flags) writer.simple(flag);
  for (const place of command.keys) writer.integer(place);
  writer.set(0, version);
  for (let part = 1; part < EMPTY_PARTS.length; part += 1) writer.array(0);
}

function writeDocs(command: Command, writer: ReplyWriter, version: RespVersion): void {
  writer.text(command.name);
  writer.map(4, version);
  writer.text("summary");
  writer.text(command.summary);
  writer.text("since");
  writer.text(SINCE);
  writer.text("group");
  writer.text(command.group);
  writer.text("arguments");
  writer.array(command.args.length);
  for (const { name, type, isOptional = false } of command.args) {
    writer.map(isOptional ? 3 : 2, version);
    writer.text("name");
    writer.text(name);
    writer.text("type");
    writer.text(type);
    if (!isOptional) continue;
    writer.text("flags");
    writer.array(1);
    writer.simple("optional");
  }
}
