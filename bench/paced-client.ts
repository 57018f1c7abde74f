/** The client of an open loop over HTTP; new connections for each order, ready before it begins. */
import { type AskerTimes, askPaced, HttpAsker } from "./asker.ts";
import { type ClientProcess, serveOrders } from "./client-process.ts";
import type { LoadOrder } from "./closed-loop.ts";
import type { PaceOrder } from "./open-loop.ts";

/** Every answer must have the status 200. */
export interface PacedOrder extends LoadOrder, PaceOrder {}

export type PacedClient = ClientProcess<PacedOrder, AskerTimes>;

export const PACED_CLIENT_ARGUMENT = "--as-paced-client";

/** Runs in the process of a `PacedClient`. */
export function runPacedClient(): void {
  serveOrders(async (order: PacedOrder): Promise<AskerTimes> => {
    const { address, requests, connections } = order;
    const asker = new HttpAsker(address, requests, connections, (status) => status === 200);
    try {
      await asker.ready;
      return await askPaced(asker, order);
    } finally {
      asker.close();
    }
  });
}

/**
 * Paced rounds of several servers in turn, the first of each to warm up.
 *
 * @returns The rounds of each.
 * @throws {Error} When an answer was wrong.
 */
export async function pacedInTurn(
  sides: readonly (() => Promise<AskerTimes>)[],
  rounds: number,
): Promise<AskerTimes[][]> {
  const told: AskerTimes[][] = sides.map(() => []);
  for (let round = 0; round <= rounds; round += 1) {
    for (const [index, ask] of sides.entries()) {
      const times = await ask();
      if (times.wrong > 0) throw new Error(`${times.wrong} answers were not the expected ones`);
      if (round > 0) told[index]?.push(times);
    }
  }
  return told;
}
