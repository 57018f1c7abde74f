/**
 * The kubectl commands of the documents, given to a kubectl that reaches no cluster: it reads verbs
 * and flags before it fails to connect.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { HAS_KUBECTL } from "./manifest-files.ts";

const DOCUMENTS = ["docs/kubernetes.md", "docs/runbooks.md"];

/** Commands of the shell blocks, without what they are piped to, one a line. */
function commandsOf(text: string): string[] {
  const blocks = [...text.matchAll(/^ *```sh\n([\s\S]*?)^ *```/gm)].map(([, block = ""]) => block);
  const lines = blocks.flatMap((block) => block.replaceAll(/\\\n\s*/g, "").split("\n"));
  return lines.flatMap((line) => {
    const command = /kubectl .*/.exec(line)?.[0];
    return command === undefined ? [] : [command.replace(/ \| .*| &$/, "")];
  });
}

const COMMANDS = [...new Set(DOCUMENTS.flatMap((path) => commandsOf(readFileSync(path, "utf8"))))]
  // Spread over lines by a quoted text; another test runs it.
  .filter((command) => !command.includes("--from-literal"))
  .sort();

const folder = mkdtempSync(join(tmpdir(), "aliquot-kubectl-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Its exit code, and what a command says on standard error. */
function run(command: string): Promise<string> {
  const config = join(folder, "config");
  const file = join(folder, "dashboard.json");
  writeFileSync(file, "{}");
  const cluster = "{ name: none, cluster: { server: 'http://127.0.0.1:1' } }";
  const context = "{ name: none, context: { cluster: none, user: none } }";
  writeFileSync(
    config,
    `{ apiVersion: v1, kind: Config, clusters: [${cluster}], contexts: [${context}], ` +
      "current-context: none }",
  );
  const { PATH = "" } = process.env;
  const named = { NAMESPACE: "checkout", FLEET: "checkout", POD: "pod/checkout-1" };
  const env = { PATH, KUBECONFIG: config, HOME: folder, ...named };
  const child = spawn("sh", ["-c", command.replace("dashboard.json", file)], {
    env,
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  return new Promise((resolve) => child.on("close", (code) => resolve(`exit ${code}: ${said}`)));
}

it("the documents have kubectl commands", () => {
  expect(COMMANDS.length).toBeGreaterThan(25);
});

// Skipped where kubectl is absent: nothing else knows its flags.
describe.skipIf(!HAS_KUBECTL)("kubectl understands", () => {
  it.each(COMMANDS)("%s", { timeout: 60_000 }, async (command) => {
    const said = await run(command);
    if (command.startsWith("kubectl kustomize ")) expect(said).toBe("exit 0: ");
    else expect(said).toMatch(/127\.0\.0\.1:1\b.*(refused|right host or port)/);
  });

  it.each([
    ["a flag that it does not have", "kubectl get pods --labels a=b"],
    ["a verb that it does not have", "kubectl rollout again deployment/a"],
  ])("not %s", async (_what, command) => {
    expect(await run(command)).not.toMatch(/refused|right host or port/);
  });
});
