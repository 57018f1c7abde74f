import { findProgram, startProgram } from "./program.ts";
import { failingClosed, placed, recipeFile } from "./recipe.ts";
import { describeThroughProxy } from "./through-proxy.ts";

const binary = findProgram("caddy");
const recipe = recipeFile("caddy.md", "Caddyfile");

describeThroughProxy({
  name: "Caddy",
  binary,
  closedStatus: 502,
  start: ({ socket, port, appPort }, closed) =>
    startProgram({
      binary: binary ?? "",
      files: {
        Caddyfile: placed(closed ? failingClosed(recipe) : recipe, {
          "/run/aliquot/http.sock": socket,
          "127.0.0.1:3000": `127.0.0.1:${appPort}`,
          ":8080": `:${port}`,
        }),
      },
      args: (folder) => ["run", "--config", `${folder}/Caddyfile`, "--adapter", "caddyfile"],
      port,
    }),
});
