import { findProgram, startProgram } from "./program.ts";
import { failingClosed, placed, recipeFile } from "./recipe.ts";
import { describeThroughProxy } from "./through-proxy.ts";

const binary = findProgram("haproxy");
const recipe = recipeFile("haproxy.md", "haproxy.cfg");
const script = recipeFile("haproxy.md", "aliquot.lua");

describeThroughProxy({
  name: "HAProxy",
  binary,
  closedStatus: 503,
  start: ({ socket, port, appPort }, closed) =>
    startProgram({
      binary: binary ?? "",
      files: {
        "haproxy.cfg": placed(closed ? failingClosed(recipe) : recipe, {
          "/etc/haproxy/aliquot.lua": "aliquot.lua",
          "127.0.0.1:3000": `127.0.0.1:${appPort}`,
          "bind :8080": `bind 127.0.0.1:${port}`,
        }),
        "aliquot.lua": placed(script, { "/run/aliquot/http.sock": socket }),
      },
      args: (folder) => ["-db", "-f", `${folder}/haproxy.cfg`],
      port,
    }),
});
