import { envoyBinary, startEnvoy } from "./envoy-program.ts";
import { failingClosed, placed, recipeFile } from "./recipe.ts";
import { describeThroughProxy } from "./through-proxy.ts";

const recipe = recipeFile("envoy.md", "envoy-forward.yaml");

describeThroughProxy({
  name: "Envoy with ext_authz",
  binary: envoyBinary,
  closedStatus: 503,
  start: ({ socket, port, appPort }, closed) =>
    startEnvoy(
      placed(closed ? failingClosed(recipe) : recipe, {
        "/run/aliquot/http.sock": socket,
        "address: 0.0.0.0, port_value: 8080": `address: 127.0.0.1, port_value: ${port}`,
        "port_value: 3000": `port_value: ${appPort}`,
      }),
      port,
    ),
});
