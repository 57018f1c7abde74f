// Compiles src, sim and bench into dist and puts the Lua scripts where the compiled code expects
// them: the relative URL from src/store/redis to lua is the same in source and in build.
import { execFileSync } from "node:child_process";
import { cpSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = new URL("..", import.meta.url);
const dist = new URL("dist/", root);

rmSync(dist, { recursive: true, force: true });
const compiler = fileURLToPath(new URL("node_modules/typescript/bin/tsc", root));
execFileSync(process.execPath, [compiler, "-p", "tsconfig.build.json"], {
  cwd: fileURLToPath(root),
  stdio: "inherit",
});
cpSync(new URL("lua/", root), new URL("lua/", dist), { recursive: true });
