import { createLog } from "../platform/log.ts";
import { createMetrics } from "../platform/metrics.ts";
import type { Config } from "../platform/config.ts";
import { describeConfig, loadConfig } from "../platform/config.ts";
import { Fault } from "../../schemas/faults.ts";
import type { Actions, Common } from "../cli/actions.ts";
import { fileExists } from "../stack/machine.ts";
import { approvalActions } from "./approval-actions.ts";
import { capabilityActions } from "./capability-actions.ts";
import { contractActions } from "./contract-actions.ts";
import { costActions } from "./cost-actions.ts";
import { decideAction } from "./decide-action.ts";
import { evalActions } from "./eval-actions.ts";
import { runDemo } from "./demo/run-demo.ts";
import { loadCostSettings, loadThresholds, processorsWith } from "./load-processors.ts";
import type { Place } from "./place.ts";
import { localFiles } from "./place.ts";
import { incidentActions } from "./incident-actions.ts";
import { policyActions } from "./policy-actions.ts";
import { readActions } from "./read-actions.ts";
import { replayActions } from "./replay-actions.ts";
import { replayAdapterAction } from "./replay-adapter-action.ts";
import { appServerActions } from "./app-server-actions.ts";
import { hookAction } from "./hook-action.ts";
import { runtimeActions } from "./runtime-actions.ts";
import type { RoleStarters } from "./serve.ts";
import { serveRoles, toRoles } from "./serve.ts";
import type { RunPlace } from "./shadow-job.ts";
import { processesOfRuns } from "./shadow-process.ts";
import { simulateActions } from "./simulate-actions.ts";
import { stackActions } from "./stack-actions.ts";
import { startDesk } from "./start-desk.ts";
import { startExporter } from "./start-exporter.ts";
import { startCostWatchService } from "./start-cost-watch.ts";
import { startGate } from "./start-gate.ts";
import { startOperations } from "./start-operations.ts";
import { startProcessors } from "./start-processors.ts";
import { startRelay } from "./start-relay.ts";
import { startSealer } from "./start-sealer.ts";
import { tail } from "./tail.ts";
import { recoveryActions } from "./recovery-actions.ts";
import { sqlActions } from "./sql-actions.ts";
import { takeoverActions } from "./takeover-actions.ts";
import { loadThrottle } from "./load-throttle.ts";
import { issueToken } from "./tokens.ts";
import { workshopActions } from "./workshop-actions.ts";

const starters = {
  relay: startRelay,
  sealer: startSealer,
  desk: startDesk,
  exporter: startExporter,
  processors: startProcessors,
  operations: startOperations,
};

/** Every command of the command line, wired to the rooms that do the work. */
export function createActions(place: Place, runs: RunPlace = processesOfRuns(place)): Actions {
  /** The environment, else the settings that `fabric up` wrote for the named stack. */
  async function configOf(common: Common): Promise<Config> {
    const { envFile } = localFiles(place, common.stack);
    return loadConfig((await fileExists(envFile)) ? { envFile } : {});
  }
  return {
    ...stackActions(place),
    ...contractActions(place, configOf),
    ...readActions(configOf),
    ...policyActions(configOf),
    ...simulateActions(configOf),
    ...approvalActions(configOf),
    ...capabilityActions(configOf),
    ...incidentActions(configOf),
    ...costActions(place, configOf),
    ...evalActions(configOf),
    ...takeoverActions(configOf),
    ...recoveryActions(configOf),
    ...sqlActions(place, configOf),
    ...workshopActions(place, configOf),
    ...replayActions(place, configOf, runs),
    ...replayAdapterAction(place, configOf, runs),
    ...runtimeActions(configOf),
    ...hookAction(),
    ...appServerActions(configOf),
    demo: (common, { once }) => runDemo(place, common, once),
    async serve(common, { roles }) {
      const config = await configOf(common);
      const around = {
        config,
        log: createLog({ service: "fabric", level: config.logLevel }),
        metrics: createMetrics({ processMetrics: true }),
      };
      const cost = await loadCostSettings(config, place);
      const throttle = await loadThrottle(config, place);
      const all: RoleStarters = {
        ...starters,
        gate: (one, signal) => startGate(one, signal, throttle),
        costWatch: (one, signal) => startCostWatchService(one, cost.budgets, signal),
      };
      const known = processorsWith(cost, await loadThresholds(config, place));
      await serveRoles(around, toRoles(roles, known), all, common.signal, () => undefined);
      return { json: { stopped: true }, text: "" };
    },
    async configCheck(common) {
      const shown = describeConfig(await configOf(common));
      return { json: shown, text: JSON.stringify(shown, null, 2) };
    },
    decide: (common, options) => decideAction(common, () => configOf(common), options),
    tail: async (common, options) => tail(await configOf(common), common, options),
    async tokensIssue(common, options) {
      const config = await configOf(common);
      if (config.authKeysFile === undefined) {
        throw new Fault(
          "CONFIG_INVALID",
          "FABRIC_AUTH_KEYS_FILE is not set; tokens of other machines come from your OIDC issuer",
        );
      }
      return issueToken(config.authKeysFile, options, common);
    },
  };
}
