import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { DockerComposeEnvironment, Wait } from "testcontainers";
import { freePort } from "../../services/stack/ports.ts";
import type { StackEndpoints } from "../../services/stack/stack.ts";

/**
 * The stack of a test run in containers of its own, for a machine with a Docker engine; testcontainers removes them,
 * also when the run is killed. Not yet run against a real engine: none was at hand.
 */
export const containerStack = async (
  projectDir: string,
): Promise<StackEndpoints & { stop(): Promise<void> }> => {
  const [kafka, registry, postgres] = [await freePort(), await freePort(), await freePort()];
  const password = randomBytes(12).toString("hex");
  const running = await new DockerComposeEnvironment(join(projectDir, "deploy"), "compose.yaml")
    .withEnvironment({
      FABRIC_KAFKA_PORT: String(kafka),
      FABRIC_REGISTRY_PORT: String(registry),
      FABRIC_POSTGRES_PORT: String(postgres),
      FABRIC_POSTGRES_PASSWORD: password,
      FABRIC_REGISTRY_PASSWORD: randomBytes(12).toString("hex"),
    })
    .withWaitStrategy("kafka-1", Wait.forHealthCheck())
    .withWaitStrategy("postgres-1", Wait.forHealthCheck())
    .withWaitStrategy("registry-1", Wait.forHttp("/apis/ccompat/v7/subjects", 8080))
    .up();
  return {
    kafkaBrokers: [`127.0.0.1:${String(kafka)}`],
    registryUrl: `http://127.0.0.1:${String(registry)}/apis/ccompat/v7`,
    postgresUrl: `postgres://fabric:${password}@127.0.0.1:${String(postgres)}/fabric`,
    stop: async () => {
      await running.down({ removeVolumes: true });
    },
  };
};
