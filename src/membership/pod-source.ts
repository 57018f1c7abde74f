/** Something beside the store that lists the pods of the fleet. */
export interface PodSource {
  /** Begins to list and never gives up by itself. Safe to call once. */
  start(): void;
  /** Ends what is under way; nothing is told afterwards. */
  stop(): void;
}
