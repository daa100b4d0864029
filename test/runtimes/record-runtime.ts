import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Behaviour, ClientDrive, RuntimeRoom } from "../../services/platform/runtime-room.ts";
import { projectDir } from "../harness/stack.ts";
import { installClient } from "./client-cache.ts";
import type { NamedPayload, PayloadChanges } from "./payload-changes.ts";
import { comparePayloads, eventNameOf } from "./payload-changes.ts";
import { startRecordingGate } from "./recording-gate.ts";
import { createRuntimeRig } from "./runtime-rig.ts";
import { scenarioOf } from "./scenarios.ts";

/** What a recording left. */
export interface Recording {
  readonly version: string;
  readonly folder: string;
  readonly payloads: number;
  readonly changes: PayloadChanges;
  /** Events that the adapter of now does not understand: with this version their calls are refused. */
  readonly unrecognized: readonly string[];
  /** Fields that the adapter has never seen, by event. */
  readonly unknownFields: readonly string[];
}

/** The scenarios that bring about what a session consists of; the bypasses are an attacker's, not a session's. */
const scenarios: readonly Behaviour[] = ["allow", "deny", "two_calls", "failing_command", "subagent"];

/** The same client in another version: the first pin is the client itself. */
function withVersion(drive: ClientDrive, version: string | null): ClientDrive {
  if (version === null) return drive;
  const replace = (pins: readonly string[] | undefined): readonly string[] | undefined =>
    pins?.map((pin, at) => (at === 0 ? pin.replace(/(@|==)[^@=]+$/, `$1${version}`) : pin));
  const { npm, pip, node } = drive.pins;
  const [newNpm, newPip] = [replace(npm), replace(pip)];
  return {
    ...drive,
    pins: {
      ...(newNpm === undefined ? {} : { npm: newNpm }),
      ...(newPip === undefined ? {} : { pip: newPip }),
      ...(node === undefined ? {} : { node }),
    },
  };
}

const corpusOf = (runtime: string): string => join(projectDir, "test/corpus/hooks", runtime);
const recordingOf = (runtime: string, version: string): string =>
  join(projectDir, ".fabric", "recordings", `${runtime}-${version}`);

function readPayloads(folder: string): readonly NamedPayload[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".json"))
    .flatMap((name) => {
      const payload = JSON.parse(readFileSync(join(folder, name), "utf8")) as unknown;
      const event = eventNameOf(payload);
      return event === null ? [] : [{ event, payload }];
    });
}

/** What is known: the corpus, and beside another version what the pinned one sent in the same scenarios. */
async function readKnown(room: RuntimeRoom, wanted: string | null): Promise<readonly NamedPayload[]> {
  const { runtime } = room.adapter;
  const corpus = readPayloads(corpusOf(runtime));
  if (wanted === null) return corpus;
  const { version } = installClient(runtime, room.drive);
  const folder = recordingOf(runtime, version);
  if (!existsSync(folder)) await recordRuntime(room, null);
  return [...corpus, ...readPayloads(folder)];
}

/** Runs the client through the scenarios with the hooks that ship, keeps what they sent, and compares it with what is known. */
export async function recordRuntime(room: RuntimeRoom, wanted: string | null): Promise<Recording> {
  const { runtime } = room.adapter;
  const known = await readKnown(room, wanted);
  const drive = withVersion(room.drive, wanted);
  const client = installClient(wanted === null ? runtime : `${runtime}-${wanted}`, drive);
  const gate = await startRecordingGate(room.adapter);
  // A client's form over HTTP tells less: command hooks are told everything.
  const form = room.setup.forms.find((one) => one !== "http") ?? room.setup.forms[0];
  const rig = createRuntimeRig({ ...room, drive }, client);
  try {
    for (const behaviour of scenarios) {
      const scenario = scenarioOf(behaviour, room, form);
      if (scenario === null) continue;
      const start = "child" in scenario.script ? drive.prepareForSubagent : undefined;
      const { script } = scenario;
      await rig.run({ script, gateUrl: gate.url, form, ...(start === undefined ? {} : { start }) });
    }
  } finally {
    gate.close();
    rig.close();
  }
  const folder = recordingOf(runtime, client.version);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const named = gate.recorded.map((one) => ({ ...one, event: eventNameOf(one.payload) ?? "unnamed" }));
  for (const [at, { event, payload }] of named.entries()) {
    const file = `${String(at).padStart(3, "0")}.${event.replaceAll(/[^\w.-]/g, "_")}.json`;
    writeFileSync(join(folder, file), `${JSON.stringify(payload, null, 2)}\n`);
  }
  return {
    version: client.version,
    folder,
    payloads: named.length,
    changes: comparePayloads(known, named),
    unrecognized: [
      ...new Set(named.filter(({ isUnrecognized }) => isUnrecognized).map(({ event }) => event)),
    ],
    unknownFields: [
      ...new Set(
        named.flatMap(({ event, unknownFields }) => unknownFields.map((path) => `${event} ${path}`)),
      ),
    ].sort(),
  };
}
