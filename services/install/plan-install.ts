import { hash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { FileEdit, HookForm, InstallTarget, RuntimeRoom } from "../platform/runtime-room.ts";
import type { FileChange } from "./config-files.ts";
import { readText } from "./config-files.ts";
import type { HookTools } from "./hook-commands.ts";
import { gatingDeadlineMs, observingDeadlineMs, toHookCommands } from "./hook-commands.ts";
import type { InstalledRecord } from "./installed-record.ts";
import { readRecord, recordPath } from "./installed-record.ts";
import { hasSameContent } from "./same-content.ts";

/** What an installation is asked for. */
export interface InstallRequest {
  readonly room: RuntimeRoom;
  readonly home: string;
  readonly form: HookForm;
  readonly gateUrl: string;
  readonly token: string;
  readonly program: string;
  readonly clientVersion: string;
  readonly tools: HookTools;
  /** How long a call waits for its approval; default 0: it gets a ticket at once. */
  readonly approvalWaitMs?: number;
  /** Of a library; default `<home>/python`. */
  readonly packagesDir?: string;
}
/** Everything that it would change, before anything is. */
export interface InstallPlan {
  readonly target: InstallTarget;
  /** Files of the client. */
  readonly changes: readonly FileChange[];
  /** Files of ours beside them: shim, address, token. */
  readonly ownFiles: readonly FileChange[];
  readonly record: Omit<InstalledRecord, "installedAt">;
}

const ownerOnly = 0o600;
const hashChars = 16;

/** Our folder for one runtime: below `.fabric/`, which no agent may write under the bundles that ship. */
export const fabricDirOf = (home: string, runtime: string): string => `${home}/.fabric/hooks/${runtime}`;

const digestOf = (text: string): string => `sha256:${hash("sha256", text, "hex")}`;
const readShim = (name: string): Promise<string> =>
  readFile(fileURLToPath(new URL(`./shim/${name}`, import.meta.url)), "utf8");

/** The target with the hash of what the client will load; the token is no part of it, since it is renewed. */
export function toTarget(request: Omit<InstallRequest, "program">): InstallTarget {
  const { room, home, form, gateUrl, clientVersion, tools } = request;
  const { runtime, version } = room.adapter;
  const fabricDir = fabricDirOf(home, runtime);
  const approvalWaitMs = request.approvalWaitMs ?? 0;
  const targetOf = (configurationHash: string, token: string): InstallTarget => ({
    home,
    form,
    gateUrl,
    token,
    tokenFile: `${fabricDir}/token`,
    fabricDir,
    configurationHash,
    ...toHookCommands(form, fabricDir, configurationHash, tools, approvalWaitMs),
    gatingDeadlineMs,
    observingDeadlineMs,
    approvalWaitMs,
    clientVersion,
    packagesDir: request.packagesDir ?? `${home}/python`,
  });
  const texts = room.setup.edits(targetOf("", "")).map(({ path, toInstalled }) => [path, toInstalled(null)]);
  const whole = JSON.stringify([runtime, version, texts]);
  return targetOf(hash("sha256", whole, "hex").slice(0, hashChars), request.token);
}

/** Reads what is there and says what would change. Throws CONFIG_INVALID for a file that cannot be understood. */
export async function planInstall(request: InstallRequest): Promise<InstallPlan> {
  const { room, program, clientVersion, form, gateUrl, token } = request;
  const target = toTarget(request);
  const earlier = await readRecord(target.fabricDir);
  const changes: FileChange[] = [];
  const files: InstalledRecord["files"] = [];
  for (const edit of room.setup.edits(target)) {
    const before = await readText(edit.path);
    const after = edit.toInstalled(before);
    changes.push({ path: edit.path, before, after, mode: edit.mode });
    const own = earlier?.files.find(({ path }) => path === edit.path);
    // A second installation: what stood there before the first one is what an undo brings back.
    const original =
      before === null ? null : own?.digest === digestOf(before) ? own.before : withoutOurs(edit, before);
    files.push({ path: edit.path, before: original, digest: digestOf(after) });
  }
  return {
    target,
    changes,
    ownFiles: await toOwnFiles(target, room.adapter.runtime, token),
    record: {
      runtime: room.adapter.runtime,
      form,
      gateUrl,
      program,
      clientVersion,
      adapterVersion: room.adapter.version,
      configurationHash: target.configurationHash,
      approvalWaitMs: target.approvalWaitMs,
      packagesDir: request.packagesDir ?? null,
      files,
    },
  };
}

/** To the letter where nothing of ours is in it, whatever a room makes of the white space. */
function withoutOurs(edit: FileEdit, text: string): string | null {
  const left = edit.toRemoved(text);
  return left !== null && hasSameContent(left, text) ? text : left;
}

async function toOwnFiles(target: InstallTarget, runtime: string, token: string): Promise<FileChange[]> {
  const texts: [string, string][] = [
    ["url", `${target.gateUrl}/v1/hooks/${runtime}\n`],
    ["token", `${token}\n`],
    [
      "deadlines",
      `${[target.gatingDeadlineMs, target.observingDeadlineMs, target.approvalWaitMs].map((ms) => ms / 1000).join(" ")}\n`,
    ],
  ];
  if (target.form === "node") texts.push(["hook.mjs", await readShim("hook.mjs")]);
  else if (target.form !== "plugin") texts.push(["hook.sh", await readShim("hook.sh")]);
  return Promise.all(
    texts.map(async ([name, after]) => {
      const path = `${target.fabricDir}/${name}`;
      return { path, before: await readText(path), after, mode: ownerOnly };
    }),
  );
}

/** What taking it out again would change: to the byte where nobody else has written since, else our part alone. */
export async function planUninstall(
  room: RuntimeRoom,
  target: InstallTarget,
): Promise<readonly FileChange[]> {
  const record = await readRecord(target.fabricDir);
  const changes: FileChange[] = [];
  for (const edit of room.setup.edits(target)) {
    const before = await readText(edit.path);
    if (before === null) continue;
    const own = record?.files.find(({ path }) => path === edit.path);
    const after = own?.digest === digestOf(before) ? own.before : withoutOurs(edit, before);
    if (after !== before) changes.push({ path: edit.path, before, after, mode: undefined });
  }
  return changes;
}

/** The record as a file of ours. */
export const toRecordFile = (fabricDir: string, record: InstalledRecord): FileChange => ({
  path: recordPath(fabricDir),
  before: null,
  after: `${JSON.stringify(record, null, 2)}\n`,
  mode: ownerOnly,
});

/** The record with the digests of what stands in its files now. */
export async function withDigestsOfNow(record: InstalledRecord): Promise<InstalledRecord> {
  const files = await Promise.all(
    record.files.map(async (file) => ({ ...file, digest: digestOf((await readText(file.path)) ?? "") })),
  );
  return { ...record, files };
}
