import { Fault } from "../../schemas/faults.ts";
import { probeTcp } from "./probes.ts";
import type { StackEndpoints, StackHandle } from "./stack-handle.ts";

const checkConfigured = async (endpoints: StackEndpoints): Promise<void> => {
  const registry = new URL(endpoints.registryUrl);
  const postgres = new URL(endpoints.postgresUrl);
  const webPort = registry.protocol === "https:" ? 443 : 80;
  const targets = [
    ...endpoints.kafkaBrokers.map(
      (broker) => ({ code: "BROKER_UNAVAILABLE", url: new URL(`kafka://${broker}`), port: 9092 }) as const,
    ),
    { code: "REGISTRY_UNAVAILABLE", url: registry, port: webPort } as const,
    { code: "DATABASE_UNAVAILABLE", url: postgres, port: 5432 } as const,
  ];
  const open = await Promise.all(
    targets.map(({ url, port }) => probeTcp(url.hostname, Number(url.port) || port)),
  );
  const brokers = endpoints.kafkaBrokers.length;
  targets.forEach(({ code, url }, index) => {
    // One broker of several is enough to begin with.
    if (open[index] || (index < brokers && open.slice(0, brokers).includes(true))) return;
    throw new Fault(code, `nothing accepts connections on ${url.host}, which the configuration names`);
  });
};

export const configuredHandle = async (endpoints: StackEndpoints, reason: string): Promise<StackHandle> => {
  await checkConfigured(endpoints);
  const notOurs = (): Promise<never> =>
    Promise.reject(new Fault("USAGE", "servers that the configuration names are not ours to stop or start"));
  return {
    ...endpoints,
    way: "configured",
    reason,
    versions: {},
    pids: {},
    stop: () => Promise.resolve(),
    stopPart: notOurs,
    start: notOurs,
    restart: notOurs,
    kill: notOurs,
  };
};
