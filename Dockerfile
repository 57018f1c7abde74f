# The sidecar's image: compiled code, its production dependencies and Node, without shell, package
# manager or root. Everything that npm brings is pinned by package-lock.json.
ARG NODE_MAJOR=24

FROM node:${NODE_MAJOR}-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
COPY . .
RUN ["npm", "run", "build"]

# The same lock file, without what only developers need.
FROM node:${NODE_MAJOR}-bookworm-slim AS dependencies
WORKDIR /dependencies
COPY package.json package-lock.json ./
RUN ["npm", "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"]

FROM gcr.io/distroless/nodejs${NODE_MAJOR}-debian12:nonroot
LABEL org.opencontainers.image.title="aliquot" \
      org.opencontainers.image.licenses="Apache-2.0"
WORKDIR /app
COPY --from=dependencies /dependencies/node_modules ./node_modules
COPY --from=build /build/package.json ./package.json
COPY --from=build /build/dist/src ./dist/src
COPY --from=build /build/dist/sim ./dist/sim
COPY --from=build /build/dist/lua ./dist/lua
ENV NODE_ENV=production
# A number, because runAsNonRoot cannot judge a name. Nothing is written outside /run/aliquot.
USER 65532:65532
EXPOSE 8792
# For engines without probes; Kubernetes uses those of the manifests.
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s \
  CMD ["/nodejs/bin/node", "/app/dist/src/main.js", "health", "--config", "/etc/aliquot/aliquot.yaml"]
ENTRYPOINT ["/nodejs/bin/node", "/app/dist/src/main.js"]
CMD ["serve", "--config", "/etc/aliquot/aliquot.yaml"]
