/** Which text format a scraper gets, and a registry for each of the two. */
import { type Metric, type OpenMetricsContentType, Registry } from "prom-client";

const OPEN_METRICS = "application/openmetrics-text";

/**
 * Whether an Accept header asks for OpenMetrics at least as much as for the Prometheus text format,
 * which is what everybody else gets.
 */
export function prefersOpenMetrics(accept: string | undefined): boolean {
  if (accept === undefined) return false;
  let openMetrics = 0;
  let plain = 0;
  for (const range of accept.split(",")) {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    const quality = qualityOf(parameters);
    if (type === OPEN_METRICS) openMetrics = Math.max(openMetrics, quality);
    if (type === "text/plain") plain = Math.max(plain, quality);
  }
  return openMetrics > 0 && openMetrics >= plain;
}

function qualityOf(parameters: readonly string[]): number {
  const text = parameters.find((parameter) => parameter.startsWith("q="));
  if (text === undefined) return 1;
  const quality = Number(text.slice("q=".length));
  return quality >= 0 && quality <= 1 ? quality : 0;
}

/**
 * A registry that renders the same metrics as OpenMetrics.
 *
 * OpenMetrics names a counter without `_total`, and prom-client renames a metric where it stands.
 * So the twin holds objects that inherit everything from the metric except what is set on them.
 */
export function openMetricsTwin(registry: Registry): Registry<OpenMetricsContentType> {
  const twin = new Registry<OpenMetricsContentType>();
  twin.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  for (const { name } of registry.getMetricsAsArray()) {
    const metric: Metric = Object.create(registry.getSingleMetric(name) ?? null);
    twin.registerMetric(metric);
  }
  return twin;
}
