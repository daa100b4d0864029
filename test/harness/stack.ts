import { fileURLToPath } from "node:url";
import { thisMachine } from "../../services/stack/machine.ts";
import { upStack } from "../../services/stack/stack.ts";
import type { StackEndpoints, StackHandle } from "../../services/stack/stack.ts";

/** The project folder. */
export const projectDir = fileURLToPath(new URL("../../", import.meta.url)).replace(/\/$/, "");

/** Servers that a CI names in place of ours; the database address is a superuser's. */
const namedEndpoints = (): Partial<StackEndpoints> => {
  const brokers = process.env["FABRIC_TEST_KAFKA_BROKERS"];
  const registryUrl = process.env["FABRIC_TEST_REGISTRY_URL"];
  const postgresUrl = process.env["FABRIC_TEST_POSTGRES_URL"];
  return {
    ...(brokers !== undefined && { kafkaBrokers: brokers.split(",") }),
    ...(registryUrl !== undefined && { registryUrl }),
    ...(postgresUrl !== undefined && { postgresUrl }),
  };
};

/**
 * The stack that all test runs of this project share (`.fabric/test`). It ends with the last run that uses it;
 * with FABRIC_TEST_STACK_KEEP=1 it stays warm for the next one.
 */
export const testStack = (log: (line: string) => void = () => undefined): Promise<StackHandle> => {
  const machine = thisMachine();
  // Another run may still use the servers that this one started: they must not be ended with this run's mark.
  const { FABRIC_RUN_MARK: _mark, ...env } = machine.env;
  return upStack({
    rootDir: projectDir,
    name: "test",
    detach: process.env["FABRIC_TEST_STACK_KEEP"] === "1",
    endpoints: namedEndpoints(),
    machine: { ...machine, env },
    postgres: { wal_level: "logical" },
    log,
  });
};
