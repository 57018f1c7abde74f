import { findProgram, startProgram } from "./program.ts";
import { failingClosed, placed, recipeFile } from "./recipe.ts";
import { describeThroughProxy } from "./through-proxy.ts";

const binary = findProgram("nginx");
const recipe = recipeFile("nginx.md", "nginx.conf");

/** Debian compiles in paths that only root may write. */
const OWN_FOLDERS = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
  .map((kind) => `${kind}_temp_path tmp-${kind};`)
  .join(" ");

describeThroughProxy({
  name: "nginx",
  binary,
  closedStatus: 503,
  start: ({ socket, port, appPort }, closed) =>
    startProgram({
      binary: binary ?? "",
      files: {
        "nginx.conf": placed(closed ? failingClosed(recipe) : recipe, {
          "/run/aliquot/http.sock": socket,
          "127.0.0.1:3000": `127.0.0.1:${appPort}`,
          "listen 8080;": `listen 127.0.0.1:${port};`,
          "http {": `http { ${OWN_FOLDERS} access_log off;`,
        }),
      },
      args: (folder) => [
        ...["-p", folder, "-c", `${folder}/nginx.conf`, "-e", "stderr"],
        ...["-g", `daemon off; pid ${folder}/nginx.pid; user root;`],
      ],
      port,
    }),
});
