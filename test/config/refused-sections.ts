/** Files that are refused for what is in their other sections. */
import { minimal } from "./loading.ts";
import type { Refused } from "./refused-limits.ts";

export const REFUSED_SECTIONS: readonly Refused[] = [
  [
    "durations out of their range",
    minimal("decision_timeout: 2s", "reconcile: { interval: 10 }"),
    [
      "a.yaml:3:19: decision_timeout: " +
        'must be a duration from 1ms to 1s, such as 100ms, 1s or 2m; got "2s"',
      "a.yaml:4:24: reconcile.interval: " +
        "must be a duration from 20ms to 10s, such as 100ms, 1s or 2m; got 10",
    ],
  ],
  [
    "a socket mode without quotes, which YAML takes for a decimal number",
    minimal("listen: { socket_mode: 0660 }"),
    [
      "a.yaml:3:24: listen.socket_mode: " +
        'must be three octal digits in quotes, such as "0660"; got 660',
    ],
  ],
  [
    "a decision listener for everyone",
    minimal("listen:", "  http: { tcp: 0.0.0.0:8790 }"),
    [
      "a.yaml:4:16: listen.http.tcp: can be reached from other machines, and nobody is asked who " +
        'they are; use 127.0.0.1, or set listen.allow_remote: true; got "0.0.0.0:8790"',
    ],
  ],
  [
    "no decision listener at all",
    minimal("listen:", "  http: { tcp: off, socket: off }"),
    ["a.yaml:4:9: listen.http: has no listener; give a socket, a TCP address or both"],
  ],
  [
    "one port for two listeners",
    minimal("listen: { ops: 0.0.0.0:8790 }"),
    ['a.yaml:3:16: listen.ops: needs another port than listen.http.tcp; got "0.0.0.0:8790"'],
  ],
  [
    "an address without a port",
    minimal("listen: { ops: localhost }"),
    ['a.yaml:3:16: listen.ops: must be host:port, such as 127.0.0.1:8790, or off; got "localhost"'],
  ],
  [
    "a socket path that no sockaddr can hold",
    minimal(`listen: { http: { socket: /${"x".repeat(107)} } }`),
    [
      "a.yaml:3:27: listen.http.socket: must be an absolute path of at most 107 bytes, or off; " +
        `got "/${"x".repeat(57)}…`,
    ],
  ],
  [
    "a password in the URL, together with others of the section",
    minimal("fleet: f", "redis:", "  url: redis://u:hush@h/0", "  password: hush"),
    [
      "a.yaml:5:8: redis.url: holds a password; use redis.password_file or the variable " +
        'ALIQUOT_REDIS_PASSWORD; got "redis://…@h/0"',
      "a.yaml:6:3: redis.password: unknown field; secrets are not kept in this file; " +
        "use password_file or the variable ALIQUOT_REDIS_PASSWORD",
    ],
  ],
  [
    "Redis without a fleet",
    minimal("redis: { url: redis://h }"),
    [
      "a.yaml:1:1: fleet: is missing; with redis, name the fleet whose pods share these limits, " +
        "such as fleet: checkout",
    ],
  ],
  [
    "Redis nowhere",
    minimal("fleet: f", "redis: { username: u }"),
    ["a.yaml:4:8: redis: needs exactly one of url, cluster and sentinel; none is there"],
  ],
  [
    "Redis in two places",
    minimal("fleet: f", "redis: { url: redis://h, cluster: [redis://i] }"),
    [
      "a.yaml:4:8: redis: " +
        "needs exactly one of url, cluster and sentinel; there are url and cluster",
    ],
  ],
  [
    "a URL of another kind",
    minimal("fleet: f", "redis: { url: http://h }"),
    [
      "a.yaml:4:15: redis.url: " +
        'must be a URL such as redis://redis:6379/0 or rediss://redis:6379/0; got "http://h"',
    ],
  ],
  [
    "options in the URL",
    minimal("fleet: f", "redis: { url: 'redis://h/0?timeout=1' }"),
    [
      "a.yaml:4:15: redis.url: must end after the database number; options are fields of redis; " +
        'got "redis://h/0?timeout=1"',
    ],
  ],
  [
    "TLS files for a connection without TLS",
    minimal("fleet: f", "redis: { url: redis://h, tls: { ca_file: a } }"),
    ["a.yaml:4:31: redis.tls: has no effect on redis:// URLs; use rediss://"],
  ],
  [
    "a certificate without its key",
    minimal("fleet: f", "redis: { url: rediss://h, tls: { cert_file: a } }"),
    ["a.yaml:4:32: redis.tls: needs both cert_file and key_file, or neither"],
  ],
  [
    "a heartbeat as long as the timeout",
    minimal("membership: { heartbeat: 5s }"),
    ["a.yaml:3:13: membership.timeout: must be at least twice membership.heartbeat"],
  ],
  [
    "a static count without a number, and without anybody to share with",
    minimal("membership: { source: static }"),
    [
      "a.yaml:3:13: membership.pods: is missing; source: static needs the number of pods",
      "a.yaml:3:23: membership.source: cannot be static without redis: " +
        'with the embedded store one pod is the whole fleet; got "static"',
    ],
  ],
  [
    "a number of pods that nobody would look at",
    minimal("membership: { pods: 3 }"),
    ["a.yaml:3:21: membership.pods: is only for source: static; leave it out; got 3"],
  ],
  [
    "a source that lists pods, without a Service and without anybody to share with",
    minimal("membership: { source: kubernetes }"),
    [
      "a.yaml:3:13: membership.service: is missing; " +
        "source: kubernetes needs the Service that selects the fleet's pods",
      "a.yaml:3:23: membership.source: cannot be kubernetes without redis: " +
        'with the embedded store one pod is the whole fleet; got "kubernetes"',
    ],
  ],
  [
    "where pods are listed, for a source that does not look there",
    minimal("membership: { service: web, namespace: shop, resolver: '10.0.0.1:53' }"),
    [
      "a.yaml:3:24: membership.service: is only for source: kubernetes and dns; leave it out; " +
        'got "web"',
      'a.yaml:3:40: membership.namespace: is only for source: kubernetes; leave it out; got "shop"',
      'a.yaml:3:56: membership.resolver: is only for source: dns; leave it out; got "10.0.0.1:53"',
    ],
  ],
  [
    "a Service of another namespace, by its whole name",
    minimal(
      "fleet: f",
      "redis: { url: redis://h }",
      "membership: { source: kubernetes, service: web.shop }",
    ),
    [
      "a.yaml:5:44: membership.service: must be the bare name of a Service for " +
        'source: kubernetes, such as web; got "web.shop"',
    ],
  ],
  [
    "a DNS server by its name",
    minimal(
      "fleet: f",
      "redis: { url: redis://h }",
      "membership: { source: dns, service: web, resolver: 'kube-dns:53' }",
    ),
    [
      "a.yaml:5:52: membership.resolver: must be an IP address and a port above 0; " +
        'got "kube-dns:53"',
    ],
  ],
  [
    "names that Kubernetes would not give",
    minimal("membership: { service: Web_1, namespace: a.b }"),
    [
      "a.yaml:3:24: membership.service: must be the name of a Service, such as web, or for dns " +
        'web.shop.svc.cluster.local; got "Web_1"',
      'a.yaml:3:42: membership.namespace: must be the name of a namespace, such as shop; got "a.b"',
    ],
  ],
  [
    "header shapes that write the same names",
    minimal("headers: [x-delta, x-epoch]"),
    [
      "a.yaml:3:10: headers: " +
        "may hold one of x-delta, x-epoch and draft-03: they share names; got a list",
    ],
  ],
  [
    "an unknown header shape",
    minimal("headers: [ietf, draft-06]"),
    ['a.yaml:3:17: headers[1]: must be ietf, x-delta, x-epoch or draft-03; got "draft-06"'],
  ],
  [
    "two documents",
    `${minimal()}\n---\n${minimal()}`,
    ["a.yaml:3:1: must hold one YAML document, not several"],
  ],
  [
    "an alias of nothing",
    minimal("fleet: *x"),
    [
      "a.yaml:3:8: is not usable YAML: " +
        "Unresolved alias (the anchor must be set before the alias): x",
    ],
  ],
  [
    "an unknown tag",
    minimal("fleet: !!js/function x"),
    ["a.yaml:3:8: is not valid YAML: Unresolved tag: tag:yaml.org,2002:js/function"],
  ],
];
