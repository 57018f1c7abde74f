# The sidecar's image: one bundled program and Node, without shell, package manager or root.
#
# What npm brings is pinned by package-lock.json. The two base images are pinned by their tags; to
# pin them by digest, which a registry may move no tag under, give both as build arguments:
#   docker build --build-arg RUNTIME_IMAGE=gcr.io/distroless/nodejs24-debian12@sha256:... .
ARG BUILD_IMAGE=node:24.22.3-bookworm-slim
ARG RUNTIME_IMAGE=gcr.io/distroless/nodejs24-debian12:nonroot

FROM ${BUILD_IMAGE} AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
COPY LICENSE tsconfig.json ./
COPY scripts/bundle.mjs ./scripts/
COPY lua ./lua
COPY sim ./sim
COPY src ./src
RUN ["npm", "run", "--silent", "bundle"]

FROM ${RUNTIME_IMAGE}
LABEL org.opencontainers.image.title="aliquot" \
      org.opencontainers.image.description="A rate limiter that runs beside every pod" \
      org.opencontainers.image.licenses="Apache-2.0"
WORKDIR /app
COPY --from=build /build/out/image ./
# One arena of malloc for all threads, of which one does all the work: less memory, same speed.
ENV NODE_ENV=production \
    MALLOC_ARENA_MAX=1
# A number, because runAsNonRoot cannot judge a name. Nothing is written outside /run/aliquot.
USER 65532:65532
EXPOSE 8792
# For engines without probes; Kubernetes uses those of the manifests. Each is a process of its own
# that takes a tenth of a second of processor time, hence not more often.
HEALTHCHECK --interval=30s --timeout=3s --start-period=5s \
  CMD ["/nodejs/bin/node", "/app/dist/src/main.js", "health", "--config", "/etc/aliquot/aliquot.yaml"]
# Young objects get 2 MB and not 16: as fast, and less memory, above all under load
# (docs/performance.md, "Footprint").
ENTRYPOINT ["/nodejs/bin/node", "--max-semi-space-size=2", "/app/dist/src/main.js"]
CMD ["serve", "--config", "/etc/aliquot/aliquot.yaml"]
