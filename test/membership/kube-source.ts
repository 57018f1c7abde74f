/** A Kubernetes source and the server that it asks, and what it told. */

import { until } from "../../fleet/until.ts";
import { KubernetesSource, type KubernetesTiming } from "../../src/membership/kubernetes-source.ts";
import { PodListing } from "../../src/membership/pod-listing.ts";
import { KubeApi, SERVICE } from "../support/kube-api.ts";

/** Far above what is needed, because the machine may be busy. */
export const WITHIN_MS = 10_000;

export interface Changes {
  readonly timing?: Partial<KubernetesTiming>;
  readonly namespace?: string;
  readonly serviceAccount?: string;
  readonly outside?: boolean;
}

export class SourceUnderTest {
  readonly api: KubeApi = new KubeApi();
  /** Everything that was told, and what a person would read. */
  readonly told: (number | undefined)[] = [];
  readonly log: string[] = [];
  /** A clock that stands still; the real one by default. */
  nowUs: number | undefined;
  private source: KubernetesSource | undefined;

  start({ timing = {}, namespace, serviceAccount, outside }: Changes = {}): void {
    const clock = { monotonicUs: () => this.nowUs ?? Math.round(performance.now() * 1_000) };
    const listing = new PodListing({
      clock,
      tell: (pods) => this.told.push(pods),
      log: {
        failing: (error) => this.log.push(`failing: ${(error as Error).message}`),
        recovered: (pods) => this.log.push(`recovered: ${pods}`),
      },
    });
    this.source = new KubernetesSource({
      server: outside === true ? undefined : this.api.address,
      serviceAccount: serviceAccount ?? this.api.serviceAccount,
      service: SERVICE,
      namespace,
      listing,
      clock,
      random: { draw: () => 0 },
      timing,
    });
    this.source.start();
  }

  stop(): void {
    this.source?.stop();
  }

  async dispose(): Promise<void> {
    this.stop();
    await this.api.dispose();
  }

  listed(pods: number): Promise<void> {
    const what = `${pods} pods are listed`;
    return until(what, WITHIN_MS, () => this.told.at(-1) === pods);
  }

  watching(count = 1): Promise<void> {
    return until("the watch is open", WITHIN_MS, () => {
      return this.api.watches.length >= count && this.api.openWatches === 1;
    });
  }

  troubleTold(): Promise<void> {
    return until("the trouble is told", WITHIN_MS, () => this.log.length > 0);
  }
}
