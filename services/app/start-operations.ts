import { Fault } from "../../schemas/faults.ts";
import { createHttpServer } from "../platform/http.ts";
import type { RunningService, Surroundings } from "./wiring.ts";

/** Health and metrics of a whole process; nothing else, so nobody needs a token. */
export async function startOperations(
  around: Surroundings,
  services: readonly RunningService[],
): Promise<RunningService> {
  const { host, port } = around.config.http;
  const app = createHttpServer({
    log: around.log.child({ service: "operations" }),
    metrics: around.metrics,
    authenticator: { authenticate: () => Promise.reject(new Fault("TOKEN_INVALID")) },
    access: {},
    probes: Object.assign({}, ...services.map((service) => service.probes)) as RunningService["probes"],
  });
  const address = await app.listen({ host, port });
  return { name: "operations", address, probes: {}, close: () => app.close() };
}
