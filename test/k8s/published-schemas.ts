/**
 * Kubernetes objects against the published schemas: those of the API server's OpenAPI document and
 * of prometheus-operator's custom resources, as compiled validators from npm.
 *
 * These let unknown fields pass, as the schemas do; the API server drops such a field with a
 * warning, and a misspelt probe is then no probe. So the validator is given an object that notes
 * what is read of it: a field that no validator looks at is one that no schema knows.
 */

/** What the tests need to know of an object. */
export interface KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
}

interface Model {
  readonly prototype: { validate(): void };
}

/** What is wrong with an object, one sentence each; none when the API server would take it all. */
export async function schemaProblems(object: KubeObject): Promise<string[]> {
  const model = await modelOf(object);
  if (model === undefined) return [`no schema for ${object.apiVersion} ${object.kind}`];
  const watched = watch(object, "");
  const problems: string[] = [];
  try {
    model.prototype.validate.call(watched.value);
  } catch (error) {
    problems.push((error as Error).message);
  }
  return [...problems, ...watched.unread().map((path) => `unknown field ${path}`)];
}

async function modelOf({ apiVersion, kind }: KubeObject): Promise<Model | undefined> {
  const from = apiVersion.startsWith("monitoring.coreos.com/")
    ? "@kubernetes-models/prometheus-operator"
    : "kubernetes-models";
  try {
    const module = (await import(`${from}/${apiVersion}/${kind}`)) as Record<string, Model>;
    return module[kind];
  } catch {
    return undefined;
  }
}

interface Watched {
  readonly value: unknown;
  /** Paths that were never read. */
  unread(): string[];
}

function watch(value: unknown, path: string): Watched {
  if (value === null || typeof value !== "object") return { value, unread: () => [] };
  const read = new Set<string>();
  const parts = new Map(
    Object.entries(value).map(([name, part]) => [name, watch(part, `${path}/${name}`)]),
  );
  const proxy = new Proxy(value, {
    get(target, name) {
      if (typeof name === "symbol") return Reflect.get(target, name);
      read.add(name);
      const part = parts.get(name);
      return part === undefined ? Reflect.get(target, name) : part.value;
    },
  });
  const unread = (): string[] =>
    [...parts].flatMap(([name, part]) => (read.has(name) ? part.unread() : [`${path}/${name}`]));
  return { value: proxy, unread };
}
