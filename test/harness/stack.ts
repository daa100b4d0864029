import { fileURLToPath } from "node:url";
import { thisMachine } from "../../services/stack/machine.ts";
import { askDocker } from "../../services/stack/docker.ts";
import { upStack } from "../../services/stack/stack.ts";
import type { StackEndpoints } from "../../services/stack/stack.ts";
import { containerStack } from "./containers.ts";

/** The project folder, also for code that was compiled into its dist/. */
export const projectDir = fileURLToPath(new URL("../../", import.meta.url)).replace(/(\/dist)?\/$/, "");

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
export const testStack = async (
  log: (line: string) => void = () => undefined,
): Promise<StackEndpoints & { stop(): Promise<void> }> => {
  const machine = thisMachine();
  const endpoints = namedEndpoints();
  if (Object.keys(endpoints).length === 0 && (await askDocker(machine)) !== undefined)
    return containerStack(projectDir);
  // Another run may still use the servers that this one started: they must not be ended with this run's mark.
  const { FABRIC_RUN_MARK: _mark, ...env } = machine.env;
  return upStack({
    rootDir: projectDir,
    name: "test",
    detach: process.env["FABRIC_TEST_STACK_KEEP"] === "1",
    endpoints,
    machine: { ...machine, env },
    postgres: { wal_level: "logical" },
    log,
  });
};
