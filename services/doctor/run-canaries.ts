import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { InstallTarget, RuntimeRoom, ScriptedCall } from "../platform/runtime-room.ts";
import { canaryWord, startCanaryGate } from "./canary-gate.ts";
import type { ClientOutcome } from "./run-client.ts";
import { cleanEnvironment, runClient } from "./run-client.ts";

/** One proof on the installed client; `null`: it could not be tried, and `detail` says why. */
export interface Canary {
  readonly name: string;
  readonly held: boolean | null;
  readonly detail: string;
}
export interface CanaryOptions {
  readonly room: RuntimeRoom;
  readonly program: string;
  readonly gateUrl: string;
  /** Installs the hooks into an empty home, pointed at another address; consent included. */
  readonly installInto: (home: string, gateUrl: string) => Promise<InstallTarget>;
  readonly signal: AbortSignal;
}

const runTimeoutMs = 120_000;
/** Nothing listens there: the port is reserved. */
const deadGateUrl = "http://127.0.0.1:1";

/** Runs the installed client in an empty home, with a scripted model: no account, no key of anybody's. */
export async function runCanaries(options: CanaryOptions): Promise<readonly Canary[]> {
  const { room } = options;
  const { shell } = room.drive.tools;
  const approved = shell(`echo ${canaryWord("approve")}; echo ran > approved.txt`);
  const calls = [
    shell(`echo ${canaryWord("deny")}; echo ran > denied.txt`),
    shell(`echo ${canaryWord("modify")}; echo ran > original.txt`),
    approved,
    approved,
  ];
  const gate = await startCanaryGate(room.adapter, options.gateUrl);
  try {
    const { outcome, target } = await runInEmptyHome(options, gate.url, calls);
    const away = await runInEmptyHome(options, deadGateUrl, [shell("echo ran > away.txt")]);
    const has = (file: string): boolean => outcome.filesCreated.includes(file);
    const told = (place: number): string => outcome.told[place]?.text ?? "nothing";
    const asked = outcome.callsAsked === calls.length;
    const whyNot = `the client did not get to its end: ${outcome.output.slice(-500)}`;
    const judge = (name: string, held: boolean, detail: string): Canary =>
      asked ? { name, held, detail } : { name, held: null, detail: whyNot };
    return [
      judge("a denied call does not run", !has("denied.txt"), told(0)),
      judge("a changed call runs as it was changed", has("changed.txt") && !has("original.txt"), told(1)),
      judge(
        "a call that waits for a person is refused, and passes after the approval",
        /APPROVAL_REQUIRED/.test(told(2)) && has("approved.txt"),
        told(2),
      ),
      judge(
        "events reach the gate",
        gate.taken.length > 0,
        gate.taken.length > 0 ? `taken: ${[...new Set(gate.taken)].join(", ")}` : "the gate took none",
      ),
      judge(
        "the running client says which hooks it has loaded",
        gate.hashes.has(target.configurationHash),
        [...gate.hashes].join(", ") || "no hash came",
      ),
      {
        name: "with the gate away nothing runs",
        held: away.outcome.callsAsked === 1 ? away.outcome.filesCreated.length === 0 : null,
        detail: away.outcome.told[0]?.text ?? away.outcome.output.slice(-500),
      },
    ];
  } finally {
    gate.close();
  }
}

async function runInEmptyHome(
  { room, program, installInto, signal }: CanaryOptions,
  gateUrl: string,
  calls: readonly ScriptedCall[],
): Promise<{ outcome: ClientOutcome; target: InstallTarget }> {
  const home = await mkdtemp(join(tmpdir(), "fabric-doctor-"));
  try {
    const workspace = join(home, "workspace");
    await mkdir(workspace);
    await mkdir(join(home, "tmp"));
    const target = await installInto(home, gateUrl);
    const env = cleanEnvironment(home, program);
    await room.setup.consent?.give({ argv: [program], env, workingDirectory: workspace, home }, target);
    const outcome = await runClient({
      drive: room.drive,
      program,
      home,
      workspace,
      script: { main: calls.map((call) => ({ calls: [call] })) },
      timeoutMs: runTimeoutMs,
      signal,
    });
    return { outcome, target };
  } finally {
    await rm(home, { recursive: true, force: true, maxRetries: 5 });
  }
}
