/** What a sidecar does to stop, in the order in which others must stop relying on it. */
import type { DrainStep } from "./drain.ts";

export interface StopParts {
  /** Nothing is put in force any more. */
  readonly watch: { stop(): void };
  readonly doors: { stop(timeoutMs: number): Promise<unknown> };
  /** How long open requests may take. */
  readonly closeMs: number;
  readonly loop: { settle(): Promise<void>; stop(): void };
  readonly membership: { leave(): Promise<unknown> } | undefined;
  readonly coordinator: { close(): Promise<unknown> } | undefined;
  readonly ops: { stop(timeoutMs: number): Promise<unknown> } | undefined;
}

/** Takes leave of callers and of the fleet. */
export function leavingSteps(parts: StopParts): DrainStep[] {
  const { watch, doors, closeMs, loop, membership } = parts;
  const stopDoors = (): Promise<unknown> => {
    watch.stop();
    return doors.stop(closeMs);
  };
  const steps: DrainStep[] = [{ name: "answer what is in flight", run: stopDoors }];
  if (membership === undefined) return steps;
  return [
    ...steps,
    { name: "report what was admitted", run: () => loop.settle() },
    { name: "leave the fleet", run: () => membership.leave() },
  ];
}

/** Lets go of everything that is open, also after a start that failed half-way. */
export function closingSteps({ watch, doors, loop, coordinator, ops }: StopParts): DrainStep[] {
  const closeStore = async (): Promise<void> => {
    watch.stop();
    loop.stop();
    await coordinator?.close();
  };
  const closeAll = (): Promise<unknown> => Promise.all([doors.stop(0), ops?.stop(0)]);
  return [
    { name: "close the store", run: closeStore },
    { name: "close the listeners", run: closeAll },
  ];
}
