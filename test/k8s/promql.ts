/** What a PromQL query asks for, read with the grammar of Prometheus's own editor. */
import { parser } from "@prometheus-io/lezer-promql";

export interface Matcher {
  readonly label: string;
  readonly operator: string;
  readonly value: string;
}

export interface Selector {
  readonly metric: string;
  readonly matchers: readonly Matcher[];
}

export interface Query {
  readonly selectors: readonly Selector[];
  /** Labels that results are grouped or matched by. */
  readonly groupedBy: readonly string[];
}

/** @throws {Error} When it is not PromQL; the message shows where. */
export function readQuery(text: string): Query {
  const selectors: { metric: string; matchers: Matcher[] }[] = [];
  const groupedBy: string[] = [];
  parser.parse(text).iterate({
    enter: (node) => {
      const written = text.slice(node.from, node.to);
      if (node.type.isError) throw new Error(`not PromQL at ${text.slice(node.from)}: ${text}`);
      if (node.name === "VectorSelector") selectors.push({ metric: "", matchers: [] });
      const selector = selectors.at(-1);
      if (node.name === "Identifier" && selector !== undefined) selector.metric = written;
      if (node.name === "UnquotedLabelMatcher") selector?.matchers.push(matcherOf(written));
      if (node.name === "GroupingLabels") groupedBy.push(...(written.match(/\w+/g) ?? []));
    },
  });
  return { selectors, groupedBy };
}

function matcherOf(written: string): Matcher {
  const [, label = "", operator = "", value = ""] =
    /^\s*(\w+)\s*(=~|!~|!=|=)\s*["']([\s\S]*)["']\s*$/.exec(written) ?? [];
  return { label, operator, value };
}

/** Whether a label's value is one that the matcher selects. */
export function isSelected({ operator, value }: Matcher, actual: string): boolean {
  const isMatch = operator.endsWith("~")
    ? new RegExp(`^(?:${value})$`).test(actual)
    : value === actual;
  return operator.startsWith("!") ? !isMatch : isMatch;
}
