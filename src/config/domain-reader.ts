/**
 * Reads one file of envoyproxy/ratelimit into plain values, with every problem and its line.
 *
 * The format is that service's, and so are most of its refusals. Stricter than there: a field in
 * the wrong place and a `rate_limit` without `requests_per_unit` are problems, because that service
 * ignores the one and blocks everybody for the other, both in silence.
 */
import type { z } from "zod";
import { UNIT_SECONDS, type Unit } from "../core/calendar.ts";
import { didYouMean } from "./closest.ts";
import {
  DESCRIPTOR_FIELDS,
  FieldReader,
  nodeAt,
  RATE_LIMIT_FIELDS,
  REPLACES_FIELDS,
  ROOT_FIELDS,
} from "./domain-fields.ts";
import { DomainProblems } from "./domain-problems.ts";
import type { FileDescriptorTerms } from "./file-shape.ts";
import { descriptorTermsSchema } from "./limit-schema.ts";
import type { Problem } from "./problem.ts";
import type { Position } from "./source-file.ts";
import type { Path } from "./tree.ts";
import { type MapNode, parseYamlTree, plainValue, type TreeNode } from "./yaml-tree.ts";

/** The largest `requests_per_unit`: it travels as a uint32. */
const REQUESTS_MAX = 4_294_967_295;

export interface FileRateLimit {
  readonly position: Position;
  readonly requestsPerUnit: number;
  /** Undefined for an unlimited rule. */
  readonly unit: Unit | undefined;
  readonly name: string | undefined;
  readonly replaces: readonly string[];
}

export interface FileDescriptor {
  /** From the root of the file. */
  readonly path: Path;
  readonly position: Position;
  readonly key: string;
  readonly value: string | undefined;
  readonly rateLimit: FileRateLimit | undefined;
  readonly terms: FileDescriptorTerms | undefined;
  readonly shadowMode: boolean;
  readonly quotaMode: boolean;
  readonly shareThreshold: boolean;
  readonly detailedMetric: boolean;
  readonly valueToMetric: boolean;
  readonly metadata: Readonly<Record<string, unknown>> | undefined;
  readonly descriptors: readonly FileDescriptor[];
}

export interface FileDomain {
  readonly source: string;
  readonly domain: string;
  readonly domainPosition: Position;
  readonly descriptors: readonly FileDescriptor[];
}

export interface ReadDomain {
  /** Undefined when the file could not be read at all. */
  readonly file: FileDomain | undefined;
  readonly problems: readonly Problem[];
}

export function readDomain(source: string, text: string): ReadDomain {
  const { root, problems: syntax } = parseYamlTree(source, text);
  if (root === undefined) return { file: undefined, problems: syntax };
  const problems = new DomainProblems(source);
  const file = new Reader(problems).file(source, root);
  return { file, problems: [...syntax, ...problems.all] };
}

const UNITS = Object.keys(UNIT_SECONDS) as Unit[];

const TERMS = ["burst", "mode", "fallback", "on_deny"];
const FALLBACK_TERMS = ["policy", "margin", "max_pods"];

class Reader {
  readonly #problems: DomainProblems;
  readonly #fields: FieldReader;

  constructor(problems: DomainProblems) {
    this.#problems = problems;
    this.#fields = new FieldReader(problems);
  }

  file(source: string, root: TreeNode): FileDomain | undefined {
    if (root.kind !== "map") {
      this.#problems.add([], root, "must be a map with domain and descriptors");
      return undefined;
    }
    this.#fields.checkNames(root, [], ROOT_FIELDS);
    const domain = this.#fields.text(root, [], "domain");
    if (domain === undefined) {
      this.#problems.addAt(["domain"], root.position, "is missing; every file names its domain");
    }
    return {
      source,
      domain: domain ?? "",
      domainPosition: root.fields.get("domain")?.value.position ?? root.position,
      descriptors: this.#descriptors(root, []),
    };
  }

  #descriptors(parent: MapNode, path: Path): readonly FileDescriptor[] {
    const seen = new Map<string, Position>();
    return this.#fields.maps(parent, path, "descriptors").flatMap(({ node, at }) => {
      const descriptor = this.#descriptor(node, at);
      if (descriptor === undefined) return [];
      const { key, value } = descriptor;
      const id = JSON.stringify([key, value]);
      const first = seen.get(id);
      if (first !== undefined) {
        const what = value === undefined ? JSON.stringify(key) : `${key} = ${value}`;
        const message = `is a duplicate of line ${first.line}: ${what}; each must be unique`;
        this.#problems.addAt(at, node.position, message);
        return [];
      }
      seen.set(id, node.position);
      return [descriptor];
    });
  }

  #descriptor(node: MapNode, path: Path): FileDescriptor | undefined {
    this.#fields.checkNames(node, path, DESCRIPTOR_FIELDS);
    const key = this.#fields.text(node, path, "key");
    if (key === undefined) {
      this.#problems.addAt([...path, "key"], node.position, "is missing; a descriptor has a key");
    }
    const value = this.#fields.text(node, path, "value");
    const shareThreshold = this.#fields.flag(node, path, "share_threshold");
    if (shareThreshold && value?.includes("*") !== true) {
      const message = "needs a * in value: it counts all values of a pattern together";
      this.#problems.addAt(
        [...path, "share_threshold"],
        this.#fields.place(node, "share_threshold"),
        message,
      );
    }
    const rateLimit = this.#rateLimit(node, path);
    const terms = this.#terms(node, path, rateLimit);
    return {
      path,
      position: node.position,
      key: key ?? "",
      value,
      rateLimit,
      terms,
      shadowMode: this.#fields.flag(node, path, "shadow_mode"),
      quotaMode: this.#fields.flag(node, path, "quota_mode"),
      shareThreshold,
      detailedMetric: this.#fields.flag(node, path, "detailed_metric"),
      valueToMetric: this.#fields.flag(node, path, "value_to_metric"),
      metadata: this.#metadata(node, path),
      descriptors: this.#descriptors(node, path),
    };
  }

  #rateLimit(descriptor: MapNode, descriptorPath: Path): FileRateLimit | undefined {
    const path = [...descriptorPath, "rate_limit"];
    const node = this.#fields.value(descriptor, "rate_limit");
    if (node === undefined) return undefined;
    if (node.kind !== "map") {
      this.#problems.add(path, node, `must be a map with ${RATE_LIMIT_FIELDS.join(", ")}`);
      return undefined;
    }
    this.#fields.checkNames(node, path, RATE_LIMIT_FIELDS);
    const name = this.#fields.text(node, path, "name");
    const common = { position: node.position, name, replaces: this.#replaces(node, path, name) };
    if (this.#fields.flag(node, path, "unlimited")) {
      const unit = this.#fields.value(node, "unit");
      const message = "must be left out of an unlimited rule";
      if (unit !== undefined) this.#problems.add([...path, "unit"], unit, message);
      return { ...common, requestsPerUnit: 0, unit: undefined };
    }
    const unit = this.#unit(node, path);
    const requestsPerUnit = this.#requests(node, path);
    if (unit === undefined || requestsPerUnit === undefined) return undefined;
    return { ...common, requestsPerUnit, unit };
  }

  #unit(node: MapNode, path: Path): Unit | undefined {
    const at = [...path, "unit"];
    const accepted = `must be ${UNITS.slice(0, -1).join(", ")} or ${UNITS.at(-1)}`;
    const given = this.#fields.value(node, "unit");
    if (given === undefined) {
      this.#problems.addAt(at, node.position, `is missing; ${accepted}`);
      return undefined;
    }
    const name = given.kind === "text" ? given.text.toLowerCase() : "";
    const unit = UNITS.find((each) => each === name);
    if (unit === undefined) this.#problems.add(at, given, accepted + didYouMean(name, UNITS));
    return unit;
  }

  #requests(node: MapNode, path: Path): number | undefined {
    const at = [...path, "requests_per_unit"];
    const form = `must be a whole number from 0 (which blocks) to ${REQUESTS_MAX}`;
    const given = this.#fields.value(node, "requests_per_unit");
    if (given === undefined) {
      this.#problems.addAt(at, node.position, `is missing; ${form}`);
      return undefined;
    }
    const digits = given.kind === "text" ? given.text.replaceAll("_", "") : "";
    const count = /^\+?[0-9]{1,12}$/.test(digits) ? Number(digits) : Number.NaN;
    if (count <= REQUESTS_MAX) return count;
    this.#problems.add(at, given, form);
    return undefined;
  }

  #replaces(rateLimit: MapNode, path: Path, own: string | undefined): readonly string[] {
    return this.#fields.maps(rateLimit, path, "replaces").flatMap(({ node, at }) => {
      this.#fields.checkNames(node, at, REPLACES_FIELDS);
      const name = this.#fields.text(node, at, "name");
      const named = [...at, "name"];
      if (name === undefined) {
        this.#problems.addAt(named, node.position, "is missing; name the rule to replace");
      } else if (name === own) {
        this.#problems.addAt(named, node.position, "is this rule itself; name another", name);
      } else return [name];
      return [];
    });
  }

  #terms(
    descriptor: MapNode,
    descriptorPath: Path,
    rateLimit: FileRateLimit | undefined,
  ): FileDescriptorTerms | undefined {
    const path = [...descriptorPath, "aliquot"];
    const node = this.#fields.value(descriptor, "aliquot");
    if (node === undefined) return undefined;
    const isCounted = rateLimit?.unit !== undefined && rateLimit.requestsPerUnit > 0;
    if (
      !isCounted &&
      (rateLimit !== undefined || this.#fields.value(descriptor, "rate_limit") === undefined)
    ) {
      const message = "refines a rate_limit with requests_per_unit above 0, and there is none";
      this.#problems.addAt(path, this.#fields.place(descriptor, "aliquot"), message);
    }
    const parsed = descriptorTermsSchema.safeParse(plainValue(node));
    if (parsed.success) return parsed.data;
    this.#reportTerms(parsed.error.issues, node, path);
    return undefined;
  }

  #reportTerms(issues: readonly z.core.$ZodIssue[], node: TreeNode, path: Path): void {
    for (const issue of issues) {
      const steps = issue.path.map((step) => (typeof step === "number" ? step : String(step)));
      const at = [...path, ...steps];
      const place = nodeAt(node, steps);
      if (issue.code !== "unrecognized_keys") this.#problems.add(at, place, issue.message);
      else {
        for (const name of issue.keys) {
          const known = steps.length === 0 ? TERMS : FALLBACK_TERMS;
          this.#fields.unknown(place, at, name, known);
        }
      }
    }
  }

  #metadata(node: MapNode, path: Path): Readonly<Record<string, unknown>> | undefined {
    const given = this.#fields.value(node, "metadata");
    if (given === undefined) return undefined;
    if (given.kind === "map") return plainValue(given) as Readonly<Record<string, unknown>>;
    this.#problems.add([...path, "metadata"], given, "must be a map");
    return undefined;
  }
}
