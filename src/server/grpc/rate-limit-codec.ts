/**
 * Envoy's rate limit messages as bytes, read and written by hand.
 *
 * The general codec (protobufjs, through proto-loader) builds an object of its own per message and
 * converts it: for a request and its response that is twice the processor time
 * (`npm run bench:grpc-codec`), and a dependency more. Field numbers are those of proto/.
 */
import type { DescriptorEntry } from "../../ports/descriptors.ts";
import type {
  DescriptorStatus,
  RateLimitDescriptor,
  RateLimitOverride,
  RateLimitRequest,
  RateLimitResponse,
} from "../rate-limit-messages.ts";
import { BYTES, VARINT, WireError, WireReader } from "./wire-reader.ts";
import { WireWriter } from "./wire-writer.ts";

const bytesTag = (field: number): number => field * 8 + BYTES;
const varintTag = (field: number): number => field * 8 + VARINT;

const TAG_1_BYTES = bytesTag(1);
const TAG_2_BYTES = bytesTag(2);
const TAG_3_BYTES = bytesTag(3);
const TAG_1_VARINT = varintTag(1);
const TAG_2_VARINT = varintTag(2);
const TAG_3_VARINT = varintTag(3);
const TAG_4_VARINT = varintTag(4);

/** What may change while a message is read: a field that comes twice counts as its last. */
type Draft<T> = { -readonly [K in keyof T]: T[K] };

/** @returns The request; or, for bytes that are no message, a sentence saying what is wrong. */
export function decodeRateLimitRequest(bytes: Buffer): RateLimitRequest | string {
  try {
    return readRequest(new WireReader(bytes));
  } catch (error) {
    if (error instanceof WireError) return error.message;
    throw error;
  }
}

function readRequest(reader: WireReader): RateLimitRequest {
  const descriptors: RateLimitDescriptor[] = [];
  const request: Draft<RateLimitRequest> = { domain: "", descriptors, hitsAddend: 0 };
  while (!reader.isAtEnd) {
    const tag = reader.tag();
    if (tag === TAG_1_BYTES) request.domain = reader.text();
    else if (tag === TAG_2_BYTES) descriptors.push(readDescriptor(reader));
    else if (tag === TAG_3_VARINT) request.hitsAddend = reader.uint32();
    else reader.skip(tag);
  }
  return request;
}

function readDescriptor(reader: WireReader): RateLimitDescriptor {
  const entries: DescriptorEntry[] = [];
  const descriptor: Draft<RateLimitDescriptor> = {
    entries,
    limit: undefined,
    hitsAddend: undefined,
    isNegativeHits: false,
  };
  const outer = reader.enter();
  while (!reader.isAtEnd) {
    const tag = reader.tag();
    if (tag === TAG_1_BYTES) entries.push(readEntry(reader));
    else if (tag === TAG_2_BYTES) descriptor.limit = readOverride(reader, descriptor.limit);
    else if (tag === TAG_3_BYTES) {
      descriptor.hitsAddend = readWrapped(reader, descriptor.hitsAddend);
    } else if (tag === TAG_4_VARINT) descriptor.isNegativeHits = reader.uint64() !== 0;
    else reader.skip(tag);
  }
  reader.leave(outer);
  return descriptor;
}

function readEntry(reader: WireReader): DescriptorEntry {
  const entry: Draft<DescriptorEntry> = { key: "", value: "" };
  const outer = reader.enter();
  while (!reader.isAtEnd) {
    const tag = reader.tag();
    if (tag === TAG_1_BYTES) entry.key = reader.text();
    else if (tag === TAG_2_BYTES) entry.value = reader.text();
    else reader.skip(tag);
  }
  reader.leave(outer);
  return entry;
}

/** @param before - The same field when it came before: protobuf merges messages. */
function readOverride(
  reader: WireReader,
  before: RateLimitOverride | undefined,
): RateLimitOverride {
  const override: Draft<RateLimitOverride> = { requestsPerUnit: 0, unit: 0, ...before };
  const outer = reader.enter();
  while (!reader.isAtEnd) {
    const tag = reader.tag();
    if (tag === TAG_1_VARINT) override.requestsPerUnit = reader.uint32();
    else if (tag === TAG_2_VARINT) override.unit = reader.uint32();
    else reader.skip(tag);
  }
  reader.leave(outer);
  return override;
}

/** A `google.protobuf.UInt64Value`: present although its value may be 0. */
function readWrapped(reader: WireReader, before: number | undefined): number {
  let value = before ?? 0;
  const outer = reader.enter();
  while (!reader.isAtEnd) {
    const tag = reader.tag();
    if (tag === TAG_1_VARINT) value = reader.uint64();
    else reader.skip(tag);
  }
  reader.leave(outer);
  return value;
}

/** What goes in front of a message in gRPC: a flag for compression, and the length. */
export const FRAME_HEAD_BYTES = 5;

/** One writer for all responses: it is emptied before anything else can run. */
const responseWriter = new WireWriter();

/** @returns The message behind the head of its frame. */
export function encodeRateLimitResponse(response: RateLimitResponse): Buffer {
  const writer = responseWriter;
  writer.begin(FRAME_HEAD_BYTES);
  writer.uint(1, response.overallCode);
  for (const status of response.statuses) writeStatus(writer, status);
  for (const { key, value } of response.responseHeadersToAdd) {
    const header = writer.open(3);
    writer.text(1, key);
    writer.text(2, value);
    writer.close(header);
  }
  const { dynamicMetadata } = response;
  if (dynamicMetadata !== undefined) {
    const metadata = writer.open(6);
    writeStruct(writer, dynamicMetadata);
    writer.close(metadata);
  }
  const framed = writer.finish();
  framed[0] = 0;
  framed.writeUInt32BE(framed.length - FRAME_HEAD_BYTES, 1);
  return framed;
}

function writeStatus(writer: WireWriter, status: DescriptorStatus): void {
  const { currentLimit, secondsUntilReset } = status;
  const message = writer.open(2);
  writer.uint(1, status.code);
  if (currentLimit !== undefined) {
    const limit = writer.open(2);
    writer.uint(1, currentLimit.requestsPerUnit);
    writer.uint(2, currentLimit.unit);
    writer.text(3, currentLimit.name);
    writer.close(limit);
  }
  writer.uint(3, status.limitRemaining);
  if (secondsUntilReset !== undefined) {
    const duration = writer.open(4);
    writer.uint(1, secondsUntilReset);
    writer.close(duration);
  }
  writer.close(message);
}

/** A `google.protobuf.Struct`. */
function writeStruct(writer: WireWriter, object: Readonly<Record<string, unknown>>): void {
  for (const [key, value] of Object.entries(object)) {
    writer.message(1, () => {
      writer.text(1, key);
      writer.message(2, () => writeValue(writer, value));
    });
  }
}

/** A `google.protobuf.Value`: a oneof, so what is set is written also when it is the default. */
function writeValue(writer: WireWriter, value: unknown): void {
  if (typeof value === "number") writer.double(2, value);
  else if (typeof value === "string") writer.textAlways(3, value);
  else if (typeof value === "boolean") writer.uintAlways(4, Number(value));
  else if (Array.isArray(value)) {
    writer.message(6, () => {
      for (const item of value) writer.message(1, () => writeValue(writer, item));
    });
  } else if (typeof value === "object" && value !== null) {
    writer.message(5, () => writeStruct(writer, value as Record<string, unknown>));
  } else writer.uintAlways(1, 0);
}
