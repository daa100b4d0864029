import { defineConfig } from "vitest/config";

/** Faults that are planted in the process itself; those that kill processes are the project `faults` alone. */
const plantedFaults = ["test/fault/host*.test.ts", "test/fault/relay*.test.ts"];
const serverTests = [
  ...["contract", "integration", "property", "replay", "e2e", "schemas", "histories"].map(
    (folder) => `test/${folder}/**/*.test.ts`,
  ),
  ...plantedFaults,
];

/** Options of every project whose tests start or talk to real servers. */
const onServers = {
  environment: "node",
  globalSetup: ["test/harness/global-setup.ts"],
  testTimeout: 60_000,
  hookTimeout: 120_000,
  pool: "forks" as const,
  // Two files at once: one broker and one database serve all of them, on a machine of two cores in CI.
  maxWorkers: 2,
};

export default defineConfig({
  test: {
    passWithNoTests: true,
    // Cells of the fault suite mostly wait; more of them at once would measure each other.
    maxConcurrency: 3,
    // Ends test workers that hang on an open handle, so that a leak is a failure and not a stuck run.
    teardownTimeout: 60_000,
    projects: [
      {
        test: {
          name: "unit",
          environment: "node",
          include: ["schemas/**/*.test.ts", "services/**/*.test.ts", "processors/**/*.test.ts"],
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          name: "check",
          environment: "node",
          include: ["test/house/**/*.test.ts"],
          testTimeout: 60_000,
          hookTimeout: 180_000,
          sequence: { groupOrder: 1 },
        },
      },
      { test: { name: "servers", include: serverTests, ...onServers, sequence: { groupOrder: 2 } } },
      {
        test: {
          name: "faults",
          include: ["test/fault/**/*.test.ts"],
          ...onServers,
          // After the servers are down the cells of the run are put into one table.
          globalSetup: ["test/harness/fault-table.ts", ...onServers.globalSetup],
          testTimeout: 180_000,
          // A fault test restarts the servers that the others use: one file at a time.
          maxWorkers: 1,
          sequence: { groupOrder: 3 },
        },
      },
      {
        test: {
          // The same file as in CI; `make test-histories` names more seeds.
          name: "histories",
          include: ["test/histories/**/*.test.ts"],
          ...onServers,
          maxWorkers: 1,
          sequence: { groupOrder: 5 },
        },
      },
      {
        test: {
          // Real clients against the real gate; installs them into .fabric/clients first.
          name: "runtimes",
          include: ["test/runtimes/**/*.test.ts"],
          ...onServers,
          testTimeout: 300_000,
          hookTimeout: 900_000,
          maxWorkers: 1,
          sequence: { groupOrder: 6 },
        },
      },
      {
        test: {
          name: "otel",
          include: ["test/otel/**/*.test.ts"],
          ...onServers,
          maxWorkers: 1,
          sequence: { groupOrder: 4 },
        },
      },
    ],
  },
});
