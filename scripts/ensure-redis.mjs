// Sees that the tests have a real server: nothing to do when redis-server or valkey-server is on
// PATH; else installs redis-server where that is possible, that is, as root on a Debian system, and
// stops the service that the package starts, because tests start their own servers.
import { execFileSync, spawnSync } from "node:child_process";
import { accessSync, constants, existsSync } from "node:fs";
import { delimiter, join } from "node:path";

const SERVERS = ["redis-server", "valkey-server"];
const EXPLANATION =
  "The tests need redis-server or valkey-server on PATH; install one of them (on Debian: " +
  "apt-get install redis-server).";

function isOnPath(name) {
  return (process.env.PATH ?? "").split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, name), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

function canInstall() {
  return process.getuid?.() === 0 && existsSync("/etc/debian_version") && isOnPath("apt-get");
}

function apt(...args) {
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  // Output of apt is only of interest when it fails.
  execFileSync("apt-get", args, { env, stdio: ["ignore", "pipe", "pipe"] });
}

function fail(reason) {
  process.stderr.write(`${EXPLANATION}${reason}\n`);
  process.exit(1);
}

if (!SERVERS.some(isOnPath)) {
  if (!canInstall()) fail("");
  process.stderr.write("redis-server is not on PATH: installing it with apt-get for the tests\n");
  try {
    apt("update", "-qq");
    apt("install", "-y", "-qq", "--no-install-recommends", "redis-server");
  } catch (error) {
    fail(` Installing it failed: ${error.stderr?.toString().trim() || error.message}`);
  }
  // Where no service manager runs there is no service either; both calls then fail in silence.
  spawnSync("systemctl", ["disable", "--now", "redis-server"], { stdio: "ignore" });
  spawnSync("service", ["redis-server", "stop"], { stdio: "ignore" });
  if (!SERVERS.some(isOnPath)) fail(" It was installed, but is not on PATH.");
}
