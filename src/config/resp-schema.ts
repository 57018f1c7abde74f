/** The schema of the Redis protocol: where it listens, and whether callers bring limits. */
import type { z } from "zod";
import { listenField, map, socketField, switchField, wholeNumberField } from "./fields.ts";
import type { FileListen, FileResp } from "./file-shape.ts";

/** Most inline limits; the engine keeps so many ready. */
const INLINE_LIMITS_MAX = 1_000;

export const respListenSchema: z.ZodType<FileListen["resp"]> = map(
  "Where checks are answered in the Redis protocol (RESP).",
  {
    socket: socketField()
      .prefault("off")
      .meta({ description: "Unix socket; `/run/aliquot/resp.sock` is the conventional one." }),
    tcp: listenField()
      .prefault("off")
      .meta({ description: "TCP address; `127.0.0.1:8793` is the conventional one." }),
  },
);

export const respSchema: z.ZodType<FileResp> = map("Checks in the Redis protocol (RESP).", {
  inline_limits: switchField()
    .prefault(false)
    .meta({ description: "Allows `CL.THROTTLE`, with which callers bring the limit." }),
  max_inline_limits: wholeNumberField(1, INLINE_LIMITS_MAX)
    .prefault(100)
    .meta({
      description:
        "Most limits that callers of this pod bring at one time; one whose buckets are all full " +
        "again does not count.",
    }),
});
