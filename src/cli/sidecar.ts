/** Speaks HTTP to a running sidecar: where it is to be found, and one request to it. */
import { request } from "node:http";
import { type Address, formatAddress, parseAddress, reachable } from "../config/address.ts";
import { environmentName } from "../config/settings.ts";
import { loadFile, namedConfigPath, problemLines } from "./configuration.ts";
import { type GivenFlags, type Io, UsageError } from "./verb.ts";

/** A place where a sidecar may listen. */
export type Place = { readonly socket: string } | { readonly tcp: Address };

export interface Reply {
  readonly status: number;
  readonly body: string;
}

/** Nobody answered; the message tells where and why. */
export class UnreachableError extends Error {
  override readonly name = "UnreachableError";
}

export interface Question {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: string;
}

/** A sidecar answers within milliseconds; a longer silence means that it hangs. */
const TIMEOUT_MS = 2_000;

/** Longest answer that is read, bytes. */
const BODY_BYTES_MAX = 4_194_304;

/**
 * Where the decision API is: as flags or environment say, else as the configuration file says, else
 * the default socket and then the default address.
 *
 * @throws {UsageError}
 */
export async function decisionPlaces(flags: GivenFlags, io: Io): Promise<readonly Place[]> {
  const socket = given("listen-http-socket", flags, io);
  const tcp = given("listen-http-tcp", flags, io);
  if (socket !== undefined || tcp !== undefined) {
    // Only what was named: a default place may belong to another sidecar.
    return placesOf(socket === "off" ? undefined : socket, addressOf("listen-http-tcp", tcp));
  }
  const listen = (await configured(flags, io))?.http;
  if (listen !== undefined) return placesOf(listen.socket, listen.tcp);
  return placesOf("/run/aliquot/http.sock", { host: "127.0.0.1", port: 8790 });
}

/** Where the ops listener is, by the same rule. @throws {UsageError} Also when it is off. */
export async function opsPlace(flags: GivenFlags, io: Io): Promise<readonly Place[]> {
  const named = given("ops", flags, io);
  const listen = named === undefined ? await configured(flags, io) : undefined;
  const byDefault = listen === undefined ? { host: "127.0.0.1", port: 8792 } : listen.ops;
  const address = named === undefined ? byDefault : addressOf("ops", named);
  if (address === undefined) throw new UsageError("the ops listener is off; nobody can be asked");
  return placesOf(undefined, address);
}

/**
 * Asks the places in turn until one answers.
 *
 * @throws {UnreachableError} When none does.
 */
export async function ask(places: readonly Place[], question: Question): Promise<Reply> {
  const failures: string[] = [];
  for (const place of places) {
    try {
      return await askOne(place, question);
    } catch (error) {
      failures.push(`${nameOf(place)}: ${reasonOf(error)}`);
    }
  }
  throw new UnreachableError(`no sidecar answers; ${failures.join("; ")}`);
}

function given(flag: string, flags: GivenFlags, io: Io): string | undefined {
  return flags.get(flag) ?? (io.env[environmentName(flag)] || undefined);
}

function addressOf(flag: string, text: string | undefined): Address | undefined {
  if (text === undefined || text === "off") return undefined;
  const address = parseAddress(text);
  if (address === undefined) {
    const got = JSON.stringify(text);
    throw new UsageError(`--${flag} must be host:port, such as 127.0.0.1:8790; got ${got}`);
  }
  return address;
}

async function configured(flags: GivenFlags, io: Io) {
  const path = namedConfigPath(flags, io);
  if (path === undefined) return undefined;
  const { config, problems } = await loadFile(path, flags, io);
  if (config === undefined) throw new UsageError(problemLines(problems).trimEnd());
  return config.listen;
}

function placesOf(socket: string | undefined, tcp: Address | undefined): readonly Place[] {
  const places: Place[] = [];
  if (socket !== undefined) places.push({ socket });
  if (tcp !== undefined) places.push({ tcp: reachable(tcp) });
  if (places.length === 0) throw new UsageError("every listener is off; nobody can be asked");
  return places;
}

function askOne(place: Place, { method, path, body }: Question): Promise<Reply> {
  const where =
    "socket" in place
      ? { socketPath: place.socket }
      : { host: place.tcp.host, port: place.tcp.port };
  const headers = body === undefined ? {} : { "content-type": "application/json" };
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const call = request({ ...where, method, path, headers, agent: false, signal }, (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > BODY_BYTES_MAX) call.destroy(new Error("the answer is too long"));
        else chunks.push(chunk);
      });
      response.on("error", reject);
      response.on("end", () => {
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() });
      });
    });
    call.on("error", reject);
    call.end(body);
  });
}

function nameOf(place: Place): string {
  return "socket" in place ? place.socket : formatAddress(place.tcp);
}

const REASONS: ReadonlyMap<string, string> = new Map([
  ["ENOENT", "no such socket"],
  ["ECONNREFUSED", "connection refused"],
  ["EACCES", "permission denied"],
  ["ENOTFOUND", "unknown host"],
  ["ABORT_ERR", `no answer within ${TIMEOUT_MS} ms`],
]);

function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return REASONS.get(code ?? "") ?? message;
}
