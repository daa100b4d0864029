import type { TestProject } from "vitest/node";
import type { StackEndpoints } from "../../services/stack/stack.ts";
import { testStack } from "./stack.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** Real servers: `inject("stack")`. */
    stack: StackEndpoints;
  }
}

/** Brings the shared servers up before the first test of a project, and gives them up after the last. */
const setup = async (project: TestProject): Promise<() => Promise<void>> => {
  const stack = await testStack((line) => process.stderr.write(`${line}\n`));
  const { kafkaBrokers, registryUrl, postgresUrl } = stack;
  project.provide("stack", { kafkaBrokers, registryUrl, postgresUrl });
  return () => stack.stop();
};

export default setup;
