/**
 * A private certificate authority for one test. It writes X.509 by itself, because a machine that
 * has Node and Redis need not have openssl: a certificate is a short tree of DER values and one
 * signature.
 */
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Certificate {
  readonly certFile: string;
  readonly keyFile: string;
}

export interface AlternativeNames {
  readonly dns?: readonly string[];
  /** IPv4 addresses. */
  readonly ip?: readonly string[];
}

interface KeyPair {
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

export class TlsAuthority {
  readonly caFile: string;
  private readonly folder = mkdtempSync(join(tmpdir(), "aliquot-tls-"));
  private readonly name: string;
  private readonly keys = newKeys();

  constructor(name = "test authority") {
    this.name = name;
    this.caFile = join(this.folder, "ca.crt");
    const isAuthority = extension("2.5.29.19", sequence(BOOLEAN_TRUE), true);
    writeFileSync(this.caFile, this.certificate(name, this.keys, isAuthority));
  }

  /** Issues a certificate for a server that goes by these names, or for a client. */
  issue(name: string, { dns = [], ip = [] }: AlternativeNames = {}): Certificate {
    const certFile = join(this.folder, `${name}.crt`);
    const keyFile = join(this.folder, `${name}.key`);
    const keys = newKeys();
    const names = [
      ...dns.map((each) => der(0x82, Buffer.from(each))),
      ...ip.map((each) => der(0x87, Buffer.from(each.split(".").map(Number)))),
    ];
    const known = names.length === 0 ? [name].map((each) => der(0x82, Buffer.from(each))) : names;
    const alternatives = extension("2.5.29.17", sequence(...known), false);
    writeFileSync(certFile, this.certificate(name, keys, alternatives));
    writeFileSync(keyFile, keys.privateKey.export({ type: "pkcs8", format: "pem" }));
    return { certFile, keyFile };
  }

  dispose(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  private certificate(subject: string, keys: KeyPair, extensionOf: Buffer): string {
    const content = sequence(
      der(0xa0, integer(Buffer.from([2]))), // version 3
      integer(Buffer.concat([Buffer.from([1]), randomBytes(8)])),
      sequence(ECDSA_WITH_SHA256),
      commonName(this.name),
      sequence(time(Date.now() - DAY_MS), time(Date.now() + DAY_MS)),
      commonName(subject),
      keys.publicKey.export({ type: "spki", format: "der" }),
      der(0xa3, sequence(extensionOf)),
    );
    const signature = sign("sha256", content, this.keys.privateKey);
    const bits = der(0x03, Buffer.concat([Buffer.from([0]), signature]));
    const whole = sequence(content, sequence(ECDSA_WITH_SHA256), bits).toString("base64");
    const lines = whole.replace(/.{64}/g, "$&\n").trim();
    return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`;
  }
}

const DAY_MS = 86_400_000;
const BOOLEAN_TRUE: Buffer = Buffer.from([0x01, 0x01, 0xff]);
const ECDSA_WITH_SHA256: Buffer = oid("1.2.840.10045.4.3.2");

function newKeys(): KeyPair {
  return generateKeyPairSync("ec", { namedCurve: "prime256v1" });
}

/** Tag, length, content. */
function der(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const size = length < 0x80 ? [length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

function sequence(...parts: Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts));
}

function integer(bytes: Buffer): Buffer {
  return der(0x02, bytes);
}

function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  const bytes = rest.flatMap((part) => {
    const digits = [part & 0x7f];
    for (let left = part >> 7; left > 0; left >>= 7) digits.unshift((left & 0x7f) | 0x80);
    return digits;
  });
  return der(0x06, Buffer.from([40 * first + second, ...bytes]));
}

function commonName(name: string): Buffer {
  const attribute = sequence(oid("2.5.4.3"), der(0x0c, Buffer.from(name)));
  return sequence(der(0x31, attribute));
}

/** UTCTime: two digits each for year to second. */
function time(atMs: number): Buffer {
  const digits = new Date(atMs).toISOString().replace(/\D/g, "").slice(2, 14);
  return der(0x17, Buffer.from(`${digits}Z`));
}

function extension(id: string, value: Buffer, isCritical: boolean): Buffer {
  const critical = isCritical ? [BOOLEAN_TRUE] : [];
  return sequence(oid(id), ...critical, der(0x04, value));
}
