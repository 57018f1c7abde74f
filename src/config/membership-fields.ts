/** The fields of `membership` that tell where pods are listed. */
import type { z } from "zod";
import { ADDRESS_PATTERN } from "./address.ts";
import { patternField } from "./fields.ts";

/** A label of DNS as Kubernetes names things: RFC 1035 for services, RFC 1123 for namespaces. */
const LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
const HOST_NAME = new RegExp(`^${LABEL}(?:\\.${LABEL}){0,31}\\.?$`);

/** A single label; `dns` takes a whole name as well. */
export const SERVICE_NAME: RegExp = new RegExp(`^${LABEL}$`);

export function serviceField(): z.ZodOptional<z.ZodType<string, string>> {
  const form = "must be the name of a Service, such as web, or for dns web.shop.svc.cluster.local";
  return patternField("name", HOST_NAME, form).optional();
}

export function namespaceField(): z.ZodOptional<z.ZodType<string, string>> {
  return patternField(
    "name",
    SERVICE_NAME,
    "must be the name of a namespace, such as shop",
  ).optional();
}

export function resolverField(): z.ZodOptional<z.ZodType<string, string>> {
  const form = "must be the address of a DNS server, such as 10.96.0.10:53";
  return patternField("address:port", ADDRESS_PATTERN, form).optional();
}
