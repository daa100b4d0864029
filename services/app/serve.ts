import type { Processor } from "../../processors/kit/processor.ts";
import { Fault } from "../../schemas/faults.ts";
import { closeInTime } from "./close-in-time.ts";
import { startInTime } from "./start-in-time.ts";
import { untilAborted } from "./until-aborted.ts";
import type { RunningService, Surroundings } from "./wiring.ts";

/** How each role of `fabric serve` is started. */
export interface RoleStarters {
  gate(around: Surroundings, signal: AbortSignal): Promise<RunningService>;
  relay(around: Surroundings, fatal: (error: unknown) => void): RunningService;
  sealer(around: Surroundings, signal: AbortSignal): Promise<RunningService>;
  desk(around: Surroundings, signal: AbortSignal): Promise<RunningService>;
  exporter(around: Surroundings, fatal: (error: unknown) => void): RunningService;
  costWatch(around: Surroundings, signal: AbortSignal): Promise<RunningService>;
  processors(
    around: Surroundings,
    processors: readonly Processor[],
    signal: AbortSignal,
  ): Promise<RunningService>;
  /** Health and metrics of the whole process. */
  operations(around: Surroundings, services: readonly RunningService[]): Promise<RunningService>;
}

/** What `fabric serve` was asked to run. */
export interface Roles {
  readonly gate: boolean;
  readonly relay: boolean;
  readonly sealer: boolean;
  readonly desk: boolean;
  readonly costWatch: boolean;
  /** Among all roles it runs where an endpoint is configured. */
  readonly exporter: "off" | "on" | "when_configured";
  readonly processors: readonly Processor[];
}

/** `gate relay`, `processor audit`, or nothing for all; throws USAGE on a word that is no role. */
export function toRoles(words: readonly string[], known: readonly Processor[]): Roles {
  if (words.length === 0) {
    const all = { gate: true, relay: true, sealer: true, desk: true, costWatch: true } as const;
    return { ...all, exporter: "when_configured", processors: known };
  }
  const chosen = new Set<Processor>();
  const roles = { gate: false, relay: false, sealer: false, desk: false, costWatch: false };
  let exporter: Roles["exporter"] = "off";
  for (let index = 0; index < words.length; index += 1) {
    const word = words[index] ?? "";
    if (word === "gate" || word === "relay" || word === "sealer" || word === "desk") roles[word] = true;
    else if (word === "exporter") exporter = "on";
    else if (word === "cost-watch") roles.costWatch = true;
    else if (word === "processor") {
      index += 1;
      const found = known.find((one) => one.name === words[index]);
      if (found === undefined) {
        throw new Fault(
          "USAGE",
          `\`processor ${words[index] ?? ""}\` is unknown; there are: ${known.map((one) => one.name).join(", ")}`,
        );
      }
      chosen.add(found);
    } else {
      throw new Fault(
        "USAGE",
        `\`${word}\` is no role; roles are gate, relay, sealer, desk, exporter, cost-watch, processor <name>`,
      );
    }
  }
  return { ...roles, exporter, processors: [...chosen] };
}

/**
 * Runs the roles until the signal, then ends them in the reverse order of their start: the gate stops taking work first,
 * the relay goes last; what it does not publish any more waits in the outbox. Rejects when a service dies by itself, and
 * when one does not end in time.
 */
export async function serveRoles(
  around: Surroundings,
  roles: Roles,
  starters: RoleStarters,
  signal: AbortSignal,
  ready: (services: readonly RunningService[]) => void,
): Promise<void> {
  const running: RunningService[] = [];
  let die: (error: unknown) => void = () => undefined;
  const death = new Promise<never>((_resolve, reject) => (die = reject));
  death.catch(() => undefined);
  let failure: { readonly error: unknown } | null = null;
  const start = async (starting: Promise<RunningService>): Promise<void> => {
    running.push(await startInTime(starting, signal));
  };
  try {
    if (roles.relay) running.push(starters.relay(around, die));
    if (roles.sealer) await start(starters.sealer(around, signal));
    if (roles.processors.length > 0) await start(starters.processors(around, roles.processors, signal));
    if (roles.exporter === "on" || (roles.exporter !== "off" && around.config.otlp.endpoint !== undefined))
      running.push(starters.exporter(around, die));
    if (roles.desk) await start(starters.desk(around, signal));
    if (roles.gate) await start(starters.gate(around, signal));
    // After the gate, which it tells how budgets stand.
    if (roles.costWatch) await start(starters.costWatch(around, signal));
    await start(starters.operations(around, running));
    for (const one of running) around.log.info({ service: one.name, address: one.address }, "started");
    ready(running);
    await Promise.race([untilAborted(signal), death]);
  } catch (error) {
    // A stop that came while a service still waited for its database is a stop, not a failure.
    if (!signal.aborted) failure = { error };
    else around.log.info({ err: error }, "stopped before everything was started");
  }
  const late = await closeInTime(running.reverse(), around.log);
  if (failure !== null) throw failure.error;
  if (late.length > 0) throw new Fault("SERVICE_NOT_ENDED", `\`${late.join("`, `")}\`; see the log`);
}
