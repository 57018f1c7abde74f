/**
 * The pods behind a Kubernetes Service, as its EndpointSlices tell.
 *
 * A pod counts while it may spend tokens: it is ready, or still serving, or terminating, since a
 * pod that is being deleted gets and answers requests until it is gone. One pod can stand in
 * several slices, for IPv4 and IPv6 or while it is moved; it counts once, by its UID.
 */

/** Kubernetes puts at most 1,000 endpoints into a slice; far more pods than one limit is for. */
export const SLICES_MAX = 1_000;

export class EndpointSlices {
  /** Pods by the name of their slice. */
  private readonly slices = new Map<string, readonly string[]>();

  /** Distinct pods that are ready, serving or terminating. */
  get pods(): number {
    const distinct = new Set<string>();
    for (const pods of this.slices.values()) for (const pod of pods) distinct.add(pod);
    return distinct.size;
  }

  /** The whole state, from a list. @throws {Error} When it is no list of slices, or too long. */
  replace(items: readonly unknown[]): void {
    const named = items.map((item) => [nameOf(item), podsOf(item)] as const);
    if (named.length > SLICES_MAX) throw new Error(`more than ${SLICES_MAX} endpoint slices`);
    this.slices.clear();
    for (const [name, pods] of named) this.slices.set(name, pods);
  }

  /** One slice was added or changed. @throws {Error} When it is no slice, or one too many. */
  put(slice: unknown): void {
    const name = nameOf(slice);
    if (!this.slices.has(name) && this.slices.size >= SLICES_MAX) {
      throw new Error(`more than ${SLICES_MAX} endpoint slices`);
    }
    this.slices.set(name, podsOf(slice));
  }

  /** One slice was deleted. @throws {Error} When it is no slice. */
  remove(slice: unknown): void {
    this.slices.delete(nameOf(slice));
  }
}

function nameOf(slice: unknown): string {
  const name = field(field(slice, "metadata"), "name");
  if (typeof name !== "string" || name === "") throw new Error("an endpoint slice has no name");
  return name;
}

function podsOf(slice: unknown): string[] {
  // A slice without endpoints has null there, or nothing.
  const endpoints = field(slice, "endpoints") ?? [];
  if (!Array.isArray(endpoints)) throw new Error("the endpoints of a slice are no list");
  return endpoints.filter(isLive).flatMap((endpoint: unknown) => identityOf(endpoint) ?? []);
}

/** What is not said: ready counts as true, serving as ready, terminating as false. */
function isLive(endpoint: unknown): boolean {
  const conditions = field(endpoint, "conditions");
  const ready = field(conditions, "ready") ?? true;
  const serving = field(conditions, "serving") ?? ready;
  return ready === true || serving === true || field(conditions, "terminating") === true;
}

/** The pod's UID; an endpoint that somebody entered by hand has only an address. */
function identityOf(endpoint: unknown): string | undefined {
  const uid = field(field(endpoint, "targetRef"), "uid");
  if (typeof uid === "string" && uid !== "") return uid;
  const addresses = field(endpoint, "addresses");
  const [address] = Array.isArray(addresses) ? addresses : [];
  return typeof address === "string" ? `address ${address}` : undefined;
}

/** A field of what may be no map at all. */
export function field(value: unknown, name: string): unknown {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as Record<string, unknown>)[name] ?? undefined;
}
