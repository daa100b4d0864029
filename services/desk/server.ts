import type { Authenticator } from "../platform/auth.ts";
import { createHttpServer } from "../platform/http.ts";
import type { AccessTable, HttpServer, Probe } from "../platform/http.ts";
import type { Log } from "../platform/log.ts";
import type { Metrics } from "../platform/metrics.ts";
import type { LoadBookedMonths } from "./close-month.ts";
import type { LoadCorrectedCall } from "./correct-cost.ts";
import { costAccess, registerCostRoutes } from "./cost-routes.ts";
import type { DeskDeps } from "./desk-deps.ts";
import type { LoadEvidence } from "./item-evidence.ts";
import { deskAccess, registerDeskRoutes } from "./routes.ts";
import { startSlaWatch } from "./sla-watch.ts";

export interface DeskOptions extends DeskDeps {
  readonly log: Log;
  readonly metrics: Metrics;
  readonly authenticator: Authenticator;
  readonly loadEvidence: LoadEvidence;
  readonly loadCorrectedCall: LoadCorrectedCall;
  readonly loadBookedMonths: LoadBookedMonths;
  readonly probes: Readonly<Record<string, Probe>>;
  /** Routes of other rooms that people ask for at the same address. */
  readonly mounts?: readonly Mount[];
  /** Between two looks at due times. */
  readonly watchEveryMs?: number;
}

/** Routes with who may call them; whoever makes them has given them what they need. */
export interface Mount {
  readonly access: AccessTable;
  register(app: HttpServer): void;
}

/** What people do by hand, over HTTP, and the watch over due times. */
export interface Desk {
  readonly app: HttpServer;
  close(): Promise<void>;
}

/** A person's words are short. */
const bodyLimitBytes = 64 * 1024;

/** Makes the desk; the caller lets it listen. */
export function createDesk(options: DeskOptions): Desk {
  const app = createHttpServer({
    log: options.log,
    metrics: options.metrics,
    authenticator: options.authenticator,
    access: Object.assign(
      { ...deskAccess, ...costAccess },
      ...(options.mounts ?? []).map((one) => one.access),
    ) as AccessTable,
    probes: options.probes,
    bodyLimitBytes,
  });
  registerDeskRoutes(app, options);
  registerCostRoutes(app, options);
  for (const one of options.mounts ?? []) one.register(app);
  const watch = startSlaWatch(options, options.watchEveryMs);
  return {
    app,
    async close() {
      await app.close();
      await watch.stop();
    },
  };
}
