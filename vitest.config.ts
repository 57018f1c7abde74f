import { defineConfig } from "vitest/config";

/** Tests that start servers, sidecars or browsers and look at what real time brings. */
const PROCESS_TESTS = [
  "test/**/*.redis.test.ts",
  "test/**/*.browser.test.ts",
  "test/{daemon,fleet,proxies,topology}/**/*.test.ts",
  "test/cli/real-sidecar.test.ts",
  "test/grpc/sidecar.test.ts",
];

export default defineConfig({
  test: {
    globalSetup: ["test/support/build.ts"],
    projects: [
      {
        extends: true,
        test: {
          name: "code",
          include: ["test/**/*.test.ts"],
          exclude: PROCESS_TESTS,
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "processes",
          include: PROCESS_TESTS,
          // After everything else: these mostly wait, and what does not shall not wait for them.
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
    ],
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});
