import type { HookForm, InstallTarget } from "../platform/runtime-room.ts";

/** What the machine has for command hooks; looked up once, at the installation. */
export interface HookTools {
  /** GNU `timeout`, which ends a hook that hangs in anything but the network. */
  readonly hasTimeout: boolean;
  /** The program that runs the Node form. */
  readonly node: string;
}

/** Inside one budget each: the gate's 250 ms decide, the rest is a slow machine's. */
export const gatingDeadlineMs = 5_000;
export const observingDeadlineMs = 3_000;
/** A shim that outlives its own deadline by this is ended. */
const hangGraceSeconds = 1;

const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/**
 * The text that a client runs for its hooks. Some clients run the tool when a hook ends with anything but code 2 and a text,
 * so every other end becomes that: a missing shim, a crash, a hang.
 * INVARIANT: test/runtimes/ "hook_crash" and "gate_away".
 */
export function toHookCommands(
  form: HookForm,
  fabricDir: string,
  configurationHash: string,
  tools: HookTools,
  approvalWaitMs: number,
): Pick<InstallTarget, "gatingCommand" | "observingCommand"> {
  const shim =
    form === "node"
      ? `${quote(tools.node)} ${quote(`${fabricDir}/hook.mjs`)}`
      : `/bin/sh ${quote(`${fabricDir}/hook.sh`)}`;
  const limited = (deadlineMs: number): string =>
    tools.hasTimeout ? `timeout -k 1 ${String(deadlineMs / 1000 + hangGraceSeconds)} ${shim}` : shim;
  const failed =
    "GATE_UNREACHABLE: the policy hook failed, so nothing was allowed; ask a person to look at it";
  return {
    gatingCommand: `${limited(gatingDeadlineMs + approvalWaitMs)} gate ${quote(configurationHash)} || { [ $? -eq 2 ] || echo '${failed}' >&2; exit 2; }`,
    observingCommand: `${limited(observingDeadlineMs)} observe ${quote(configurationHash)} || exit 0`,
  };
}
