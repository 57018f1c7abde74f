/** The figures of the reconcile benchmark as they are printed. */
import {
  RECONCILE_PODS,
  type ReconcileCase,
  type ReconcileFigures,
  type ReconcilePhase,
  STEADY_CHECKS,
} from "./reconcile.ts";

export interface ReconcileRow extends ReconcileCase, ReconcileFigures {}

export function reconcileLines({ keys, round, steady, undisturbed }: ReconcileRow): string[] {
  return [
    `  ${keys} active keys, ${RECONCILE_PODS} pods`,
    ...phaseLines("a round alone", round),
    ...phaseLines(`${STEADY_CHECKS} checks/s a pod`, steady),
    ...(undisturbed === undefined
      ? []
      : phaseLines("the same, and nothing takes a core from Redis", undisturbed)),
  ];
}

function phaseLines(name: string, phase: ReconcilePhase): string[] {
  const { seconds, keys, batches, podsUs, redisUs, scripts, loopP99, loopMax } = phase;
  const each = (us: number, count: number): string => (us / count).toFixed(1);
  const delays = (ms: readonly number[]): string => ms.map((one) => one.toFixed(1)).join(" ");
  return [
    `    ${name}: ${Math.round(keys / seconds)} keys and ${Math.round(batches / seconds)} calls ` +
      `a second for ${seconds.toFixed(1)} s`,
    `      event loops, ms of delay: p99 ${delays(loopP99)}, longest ${delays(loopMax)}`,
    `      processor time of the pods: ${each(podsUs, keys)} us a key, ` +
      `${each(podsUs, batches)} us a call`,
    `      processor time of Redis:    ${each(redisUs, keys)} us a key, ` +
      `${each(redisUs, batches)} us a call`,
    `      scripts, us: mean ${scripts.mean.toFixed(0)}, p99 ${scripts.p99.toFixed(0)}, longest ` +
      `${scripts.longest}; ${scripts.above1ms} of ${scripts.calls} took 1 ms or more`,
  ];
}
