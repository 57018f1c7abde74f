// Bundles the sidecar into the few files that its image holds, in the layout of the build: the
// program is dist/src/main.js. What `serve` does not need, or only when it is configured, is in
// files of their own that are read when they are asked for. Minified, because reading and compiling
// is most of a start, but for the names, which are in stack traces.
//
//   node scripts/bundle.mjs [FOLDER]      (out/image when left out; the folder is made anew)
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const target = resolve(process.argv[2] ?? join(ROOT, "out/image"));

// Packages that are CommonJS ask for the modules of Node by `require`.
const BANNER =
  'import{createRequire as $require}from"node:module";const require=$require(import.meta.url);';

// Every bundled file lies in dist/src, and the modules in it look for others (Lua, package.json) as
// from their own place in the build: this tells them that place.
const ownPlace = {
  name: "own-place",
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const text = readFileSync(path, "utf8");
      if (!text.includes("import.meta.url")) return undefined;
      const place = relative(join(ROOT, "src"), path).replace(/\.ts$/, ".js");
      const url = `new URL(${JSON.stringify(place)}, import.meta.url).href`;
      return { contents: text.replaceAll("import.meta.url", url), loader: "ts" };
    });
  },
};

// What packages ask for when they are loaded, for things that the sidecar does not do, and which
// would take memory and time: grpc-js's clients and their loader (with them it serves the
// statistics of channels), pino's threads, prom-client's exemplars from traces.
const LEFT_OUT = /^(@grpc\/proto-loader|\.\/make-client|thread-stream|@opentelemetry\/api)$/;

// Of grpc-js, the server alone. All that src imports of it is here.
const GRPC_SERVER = `
export { Server } from "@grpc/grpc-js/build/src/server.js";
export { ServerCredentials } from "@grpc/grpc-js/build/src/server-credentials.js";
export { Status as status } from "@grpc/grpc-js/build/src/constants.js";
`;

const smaller = {
  name: "smaller",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: LEFT_OUT }, ({ path }) => ({ path, namespace: "left-out" }));
    onLoad({ filter: /.*/, namespace: "left-out" }, () => ({ contents: "", loader: "js" }));
    onResolve({ filter: /^@grpc\/grpc-js$/ }, ({ path }) => ({ path, namespace: "grpc-server" }));
    onLoad({ filter: /.*/, namespace: "grpc-server" }, () => {
      return { contents: GRPC_SERVER, resolveDir: ROOT, loader: "js" };
    });
  },
};

// An `import` of one of Node's modules reads every property that it exports, and with some of
// them (`http.WebSocket`, `crypto.webcrypto`) comes a large part of Node that nobody here uses.
// `require` reads none.
const requiredBuiltins = {
  name: "required-builtins",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^node:/ }, ({ path, kind }) => {
      const isImported = kind === "import-statement" && path !== "node:module";
      return isImported ? { path, namespace: "builtin" } : undefined;
    });
    onLoad({ filter: /.*/, namespace: "builtin" }, ({ path }) => {
      return { contents: `module.exports = require(${JSON.stringify(path)})`, loader: "js" };
    });
  },
};

rmSync(target, { recursive: true, force: true });
const { metafile } = await build({
  absWorkingDir: ROOT,
  entryPoints: { main: "src/main.ts" },
  outdir: join(target, "dist/src"),
  bundle: true,
  splitting: true,
  minifyWhitespace: true,
  minifySyntax: true,
  format: "esm",
  platform: "node",
  target: "node20",
  banner: { js: BANNER },
  legalComments: "none",
  metafile: true,
  plugins: [ownPlace, smaller, requiredBuiltins],
  logLevel: "warning",
});
cpSync(join(ROOT, "lua"), join(target, "dist/lua"), { recursive: true });
for (const name of ["package.json", "LICENSE"]) cpSync(join(ROOT, name), join(target, name));
keepNotices(Object.keys(metafile.inputs));

// Scanners and lawyers look for packages by these files, which a bundle does not have.
function keepNotices(inputs) {
  const folders = inputs.map((path) => /^(.*node_modules\/(@[^/]+\/)?[^/]+)\//.exec(path)?.[1]);
  for (const folder of new Set(folders.filter((each) => each !== undefined))) {
    const from = resolve(ROOT, folder);
    const kept = join(target, folder.slice(folder.indexOf("node_modules")));
    mkdirSync(kept, { recursive: true });
    for (const name of readdirSync(from)) {
      if (/^(package\.json|(licen[cs]e|notice|copying)(\..*)?)$/i.test(name)) {
        cpSync(join(from, name), join(kept, name));
      }
    }
  }
}
