/** What the program of the benchmark does in the processes that it starts of itself. */
import { BARE_GRPC_ARGUMENT, runBareGrpcServer } from "./bare-grpc.ts";
import { BARE_RESP_ARGUMENT, runBareRespServer } from "./bare-resp.ts";
import { BARE_ARGUMENT, runBareServer } from "./bare-server.ts";
import { CLIENT_ARGUMENT, runClient } from "./closed-loop.ts";
import { DESIGN_CLIENT_ARGUMENT, runDesignClient } from "./design-load.ts";
import { ENGINE_ARGUMENT, runEngineRounds } from "./engine.ts";
import { MEMORY_ARGUMENT, runEngineMemory } from "./engine-memory.ts";
import { GRPC_CLIENT_ARGUMENT, runGrpcClient } from "./grpc-load.ts";
import { PACED_CLIENT_ARGUMENT, runPacedClient } from "./paced-client.ts";
import { PER_CHECK_ARGUMENT, runPerCheckServer } from "./per-check-server.ts";
import { RESP_CLIENT_ARGUMENT, runRespClient } from "./resp-load.ts";
import { runTable, TABLE_ARGUMENT } from "./workers.ts";

/** By the first argument of the program; each is given the second. */
export const ROLES: ReadonlyMap<string, (argument: string) => void> = new Map([
  [ENGINE_ARGUMENT, runEngineRounds],
  [MEMORY_ARGUMENT, runEngineMemory],
  [CLIENT_ARGUMENT, runClient],
  [PACED_CLIENT_ARGUMENT, runPacedClient],
  [BARE_ARGUMENT, runBareServer],
  [GRPC_CLIENT_ARGUMENT, runGrpcClient],
  [BARE_GRPC_ARGUMENT, runBareGrpcServer],
  [RESP_CLIENT_ARGUMENT, runRespClient],
  [BARE_RESP_ARGUMENT, runBareRespServer],
  [DESIGN_CLIENT_ARGUMENT, runDesignClient],
  [PER_CHECK_ARGUMENT, runPerCheckServer],
  [TABLE_ARGUMENT, runTable],
]);
