import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/build.ts"],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Two cores, and tests that start real servers: more workers only make timing noisier.
    maxWorkers: 2,
  },
});
