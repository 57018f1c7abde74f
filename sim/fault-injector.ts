/** Makes the faults of a plan happen in a world, and ends those that last. */
import type { Limit } from "../src/core/limit.ts";
import { type Fault, faultToLine } from "./fault-plan.ts";
import type { World } from "./world.ts";

type Of<Kind extends Fault["kind"]> = Extract<Fault, { kind: Kind }>;

export function applyFault(world: World, fault: Fault): void {
  if (fault.kind === "store-failover") {
    failOver(world, fault);
    return;
  }
  world.note("fault", faultToLine(fault));
  world.allowFault(fault);
  if (!["join", "leave", "crash", "bounce"].includes(fault.kind)) world.checker.disturbed();
  begin(world, fault);
}

function begin(world: World, fault: Exclude<Fault, { kind: "store-failover" }>): void {
  const { fleet, network, storeHost, loop } = world;
  const lasting = (forUs: number, end: () => void): void => {
    loop.after(forUs, () => {
      world.note("heal", faultToLine(fault));
      end();
    });
  };
  const each = (pods: readonly number[], act: (pod: number) => void): void => {
    for (const pod of pods) if (fleet.pods.has(pod)) act(pod);
  };
  switch (fault.kind) {
    case "join":
      for (let i = 0; i < fault.count; i += 1) fleet.join();
      return;
    case "leave":
      each(fault.pods, (pod) => fleet.leave(pod));
      return;
    case "crash":
      each(fault.pods, (pod) => world.crash(pod));
      return;
    case "bounce":
      each(fault.pods, (pod) => world.crash(pod));
      lasting(fault.forUs, () => {
        for (const pod of fault.pods) fleet.join(pod);
      });
      return;
    case "stall":
    case "pause":
      if (fault.kind === "pause") world.checker.clocksStandStill(fault.forUs);
      stall(world, fault, lasting);
      return;
    case "drift":
      each(fault.pods, (pod) => fleet.pods.get(pod)?.host.clock.setRate(loop.nowUs, fault.rate));
      return;
    case "pod-clock":
      return; // Nothing in a node can read the wall clock: that is the point of the fault.
    case "partition":
      for (const pod of fault.pods) network.partition(pod, fault.way);
      lasting(fault.forUs, () => {
        for (const pod of fault.pods) network.repair(pod, fault.way);
      });
      return;
    case "hold":
      for (const pod of fault.pods) network.hold(pod, fault.way);
      lasting(fault.forUs, () => {
        for (const pod of fault.pods) network.release(pod, fault.way);
      });
      return;
    case "link":
      worsen(world, fault, lasting);
      return;
    case "store-down":
      storeHost.goDown(fault.how);
      world.checker.storeAway();
      lasting(fault.forUs, () => {
        storeHost.comeUp(fault.how);
        if (storeHost.up) world.checker.storeBack();
      });
      return;
    case "store-flap":
      flap(world, fault);
      return;
    case "store-slow":
      storeHost.slowDown(fault.byUs);
      lasting(fault.forUs, () => storeHost.slowDown(0));
      return;
    case "store-empty":
      world.checker.storeForgot();
      storeHost.empty();
      return;
    case "store-clock":
      storeHost.stepClock(fault.byUs);
      return;
    case "config":
      reconfigure(world, fault);
      return;
  }
}

type Lasting = (forUs: number, end: () => void) => void;

function stall(world: World, fault: Of<"stall"> | Of<"pause">, lasting: Lasting): void {
  const withClock = fault.kind === "pause";
  const hosts = fault.pods.flatMap((pod) => world.fleet.pods.get(pod)?.host ?? []);
  for (const host of hosts) host.stall(withClock);
  lasting(fault.forUs, () => {
    for (const host of hosts) host.resume(withClock);
  });
}

function worsen(world: World, fault: Of<"link">, lasting: Lasting): void {
  const { loss, duplicate, reorder, delayUs } = fault;
  const baseUs = world.scenario.link.baseUs + delayUs;
  for (const pod of fault.pods) {
    world.network.worsen(pod, { baseUs, loss, duplicate, reorder, reorderUs: fault.lateUs });
  }
  lasting(fault.forUs, () => {
    for (const pod of fault.pods) world.network.mend(pod);
  });
}

function flap(world: World, fault: Of<"store-flap">): void {
  const { loop, storeHost } = world;
  for (let fromUs = 0; fromUs < fault.forUs; fromUs += fault.everyUs) {
    loop.after(fromUs, () => storeHost.goDown("refuse"));
    loop.after(fromUs + fault.downUs, () => storeHost.comeUp("refuse"));
  }
  loop.after(fault.forUs, () => world.note("heal", faultToLine(fault)));
}

/** Runs at the instant whose state will come back; the failover itself comes `lagUs` later. */
function failOver(world: World, fault: Of<"store-failover">): void {
  world.storeHost.failOverAfter(fault.lagUs, () => {
    world.note("fault", faultToLine(fault));
    world.allowFault(fault);
    world.checker.storeForgot();
    world.checker.disturbed();
  });
}

/**
 * Pod after pod gets the new limits. Meanwhile a key is measured against the larger of the old and
 * the new numbers, since both are rightly in force somewhere.
 */
function reconfigure(world: World, fault: Of<"config">): void {
  const { loop, fleet, recorder, scenario } = world;
  const limits = scenario.configs[fault.set];
  world.checker.reconfigured();
  if (limits === undefined) throw new Error(`the scenario has no set ${fault.set} of limits`);
  const pods = [...fleet.pods.values()];
  pods.forEach((pod, i) => {
    loop.after((fault.overUs * i) / Math.max(1, pods.length), () => {
      pod.host.input(() => pod.node.configChanged?.(limits));
    });
  });
  recorder.limits.forEach((record, i) => {
    const next = limits[i];
    if (next !== undefined) record.reshape(loop.nowUs, larger(record.limit, next));
  });
  loop.after(fault.overUs, () => {
    world.limits = limits;
    recorder.limits.forEach((record, i) => {
      const next = limits[i];
      if (next !== undefined) record.reshape(loop.nowUs, next);
    });
    world.note("heal", faultToLine(fault));
  });
}

const MODES_BY_BOUND = ["auto", "hybrid", "exact", "leased"] as const;

function larger(a: Limit, b: Limit): Limit {
  const faster = a.rate >= b.rate ? a : b;
  // Pods of both modes are at work meanwhile: the bound of the looser one.
  const mode = MODES_BY_BOUND.find((one) => a.mode === one || b.mode === one) ?? faster.mode;
  return { ...faster, mode, burst: Math.max(a.burst, b.burst) };
}
