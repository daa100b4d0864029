/**
 * What a runtime's room (`services/adapters/<runtime>/`) hands to `fabric install|uninstall|doctor|runtimes` and to
 * `make test-runtimes`. A room plugs in by one file, `services/adapters/<runtime>/room.ts`, that exports a `RuntimeRoom`,
 * and by its name in `services/app/runtime-rooms.ts`. Nothing else knows the room:
 *
 * - `adapter` and `capabilities` are the room's translation and matrix, as before.
 * - `setup` says which files the hooks live in, as pure edits of a text (keep what is there, take out what is ours), which
 *   versions of the client cannot be made fail-closed, and how the client's own consent is given and read.
 *   Show, diff, backup, undo, idempotence and the record of what was installed are the frame's (`services/install`).
 * - `drive` says how the real client is run without a person against a scripted model on loopback: for the canaries of
 *   `fabric doctor` and for the tests. Hooks get there by `setup`, never by `drive`: what is proved is what is installed.
 * - `records` says where the client writes down which tools ran, to find sessions that the gate never heard of.
 * - `limits` names each behaviour that the client cannot hold, and why; the suite then shows the tool running.
 *
 * The part that runs inside the client gets from `InstallTarget` all it needs: ready-made command lines for command hooks
 * (shell or Node form, each with its own deadline and fail-closed), or the gate's address, a token file and the
 * configuration hash for plugins. A plugin sends `x-fabric-hooks: <configurationHash>` with each request to
 * `POST /v1/hooks/<runtime>`, reads the token from `tokenFile` at each call (it is renewed), and keeps deadlines below
 * `gatingDeadlineMs` and `observingDeadlineMs`.
 */
import type { Adapter } from "../../schemas/adapter.ts";
import type { RuntimeCapabilities } from "./runtime-capabilities.ts";
import type { SessionRecords } from "./session-records.ts";

/** How the client reaches the gate: its own HTTP hooks, a command (curl, or Node where there is none), or code inside it. */
export type HookForm = "http" | "shell" | "node" | "plugin";

/** What an installation is made from. Every path is absolute. */
export interface InstallTarget {
  /** The person's home, or an empty folder of a canary. */
  readonly home: string;
  readonly form: HookForm;
  /** Without a slash at the end. */
  readonly gateUrl: string;
  /** The gate's token, mode 0600; what runs in the client reads it at each call. */
  readonly tokenFile: string;
  /** The token itself, for clients whose configuration has to hold it: such an edit has mode 0600. */
  readonly token: string;
  /** A folder of ours for this runtime, mode 0700: shim, settings, spool. A plugin's file may go there too. */
  readonly fabricDir: string;
  /** Digest of this installation; empty while it is computed. It has to be in the text that the running client loads. */
  readonly configurationHash: string;
  /** Shell text for a hook in front of an effect: it replies, or ends with code 2 and a text on standard error. */
  readonly gatingCommand: string;
  /** Shell text for a hook that tells something: it never holds the client, and spools what the gate does not take. */
  readonly observingCommand: string;
  /** The commands' own deadlines; a client's time limit for a hook has to be longer. */
  readonly gatingDeadlineMs: number;
  readonly observingDeadlineMs: number;
  /** So long a call waits for the approval that it needs before it is refused with its ticket; 0: not at all. */
  readonly approvalWaitMs: number;
  readonly clientVersion: string;
  /** For a client that is a library: the folder that its programs import from. A canary's is `<home>/python`. */
  readonly packagesDir: string;
}

/** One file of the client that an installation changes. Pure: texts in, texts out. */
export interface FileEdit {
  readonly path: string;
  /** Default: what the file has, 0644 for a new one. 0600 for a file that holds the token. */
  readonly mode?: number;
  /** The text with our part, whatever of ours was in it before. Throws CONFIG_INVALID for a text that it cannot read. */
  toInstalled(before: string | null): string;
  /** The text without our part, to the letter where there is none; null: nothing of anybody else is in it, so it goes. */
  toRemoved(text: string): string | null;
}

/** What a person agrees to in the client's own way, as it is shown before the yes. */
export interface ConsentItem {
  readonly what: string;
  readonly hash: string;
}
/** `modified`: there was a yes, to another content. `untrusted`: the client would skip it. */
export type ConsentState = "managed" | "trusted" | "untrusted" | "modified" | "missing";

/** A client's program with the environment and folder that it is to be run in. */
export interface ClientProgram {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly workingDirectory: string;
  readonly home: string;
}
/** Clients that skip hooks without a yes of their own keeping (content hash, allowlist). Effects: it runs the client. */
export interface Consent {
  /** What the client asks about, as it sees the installed files now. */
  show(program: ClientProgram, target: InstallTarget): Promise<readonly ConsentItem[]>;
  /** Records the yes as the client's own interface would. */
  give(program: ClientProgram, target: InstallTarget): Promise<void>;
  /** The worst state among our hooks. */
  state(program: ClientProgram, target: InstallTarget): Promise<ConsentState>;
}

export interface RuntimeSetup {
  /** The program as a person types it; `program --version` prints a version somewhere in its first line. */
  readonly program: string;
  /** For a client that is a library: what its interpreter is run with instead, to print the version, then `packagesDir`. */
  readonly libraryArguments?: readonly string[];
  /** What is left to do by hand after an installation, as lines for a person. */
  readonly nextSteps?: readonly string[];
  /** Forms that this client takes, the default first. */
  readonly forms: readonly [HookForm, ...HookForm[]];
  /** Why hooks of this version in this form cannot be made fail-closed, in a sentence that says what to do; else null. */
  refuse(version: string, form: HookForm): string | null;
  edits(target: InstallTarget): readonly FileEdit[];
  /** Folders that hold nothing but ours, and what the client makes of it; an undo takes them away whole. */
  readonly ownFolders?: (target: InstallTarget) => readonly string[];
  readonly consent?: Consent;
  /** What in the files as they are would switch the hooks off or open a way past them; empty: nothing. Pure. */
  findOpenings(textOf: (path: string) => string | null, target: InstallTarget): readonly string[];
}

/** One tool call that the scripted model asks for, in the runtime's own words. */
export interface ScriptedCall {
  readonly name: string;
  /** A string: a custom (free-form) call of the Responses format. */
  readonly input: Readonly<Record<string, unknown>> | string;
  readonly namespace?: string;
}
/** A tool's result as it stands in a request to the model: what the model was told. */
export interface ToldResult {
  readonly id: string;
  readonly text: string;
}
/** Where one run of a client happens. */
export interface DriveRun {
  readonly program: string;
  /** Empty but for what `setup` laid into it. */
  readonly home: string;
  readonly workspace: string;
  /** The scripted model, without a path. */
  readonly modelUrl: string;
  readonly apiKey: string;
  readonly prompt: string;
}
export interface ClientStart {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: string;
}
/** How the real client is run without a person against the scripted model. */
export interface ClientDrive {
  /** What the tests install into their cache: exact versions. */
  readonly pins: {
    readonly npm?: readonly string[];
    readonly node?: string;
    readonly pip?: readonly string[];
  };
  /** The program below a folder that the pins were installed into. */
  programIn(dir: string): string;
  /** A folder that has to come first on PATH. */
  readonly pathIn?: (dir: string) => string;
  readonly tools: {
    shell(command: string): ScriptedCall;
    write?(path: string, content: string, workspace: string): ScriptedCall;
    subagent?(prompt: string): ScriptedCall;
  };
  /** Lays the model's configuration into `home`, beside what is there, and says how the client starts. */
  prepare(run: DriveRun): Promise<ClientStart>;
  /** For a run with a child agent, where the usual start knows none. */
  readonly prepareForSubagent?: (run: DriveRun) => Promise<ClientStart>;
}

/** Behaviours that `make test-runtimes` proves on the real client; a room may add known ways past its hooks. */
export type Behaviour =
  | "allow"
  | "deny"
  | "modify"
  | "approve"
  | "gate_away"
  | "gate_slow"
  | "gate_garbage"
  | "hook_crash"
  | "two_calls"
  | "subagent"
  | "failing_command"
  | `bypass_${string}`;

/** A setting of the client's own that might stand in a hook's place; the suite runs the client with it. */
export interface Attempt {
  /** As a person would write it. */
  readonly setting: string;
  /** Whether the tool was stopped with it; the suite asserts it either way. */
  readonly helps: boolean;
  /** Changes how the client starts, or its files below `home`, after everything else was laid out. */
  change(start: ClientStart, run: DriveRun): Promise<ClientStart>;
}
/** A behaviour that the client does not let us hold: what was tried, and what stands in its place. */
export interface Limit {
  readonly why: string;
  readonly tried: string;
  readonly mitigation: string;
  readonly attempt?: Attempt;
}
/** What somebody does to an installation after it was made. Pure: the text of one file in, its new text out. */
export interface Damage {
  pathOf(target: InstallTarget): string;
  /** `null`: the file goes. */
  toDamaged(text: string): string | null;
}
/** A known way past the hooks, as turns of the scripted model: held when the installation closes it, else a `limits` entry. */
export interface Bypass {
  readonly behaviour: `bypass_${string}`;
  /** Each call may depend on what the model was told so far. None: the way needs no model. */
  readonly turns: readonly (ScriptedCall | ((told: readonly ToldResult[]) => ScriptedCall))[];
  /** File in the workspace that exists when the way was open. */
  readonly leaves: string;
  /** Starts the client in another way than `drive` does, for a way in that no model's call opens. */
  readonly start?: (run: DriveRun) => Promise<ClientStart>;
  readonly damage?: Damage;
  /** The bundle lets the tool itself run: what is in question is what it does inside. */
  readonly isToolPermitted?: boolean;
}

/** One runtime, whole. */
export interface RuntimeRoom {
  readonly adapter: Adapter;
  readonly capabilities: RuntimeCapabilities;
  readonly setup: RuntimeSetup;
  readonly drive: ClientDrive;
  /** Absent: the client keeps no record of its sessions. */
  readonly records?: SessionRecords;
  readonly limits: Readonly<Partial<Record<Behaviour, Limit>>>;
  readonly bypasses: readonly Bypass[];
}

/** A runtime that needs no installation: what to configure is shown. */
export interface RuntimeGuide {
  readonly adapter: Adapter;
  readonly capabilities: RuntimeCapabilities;
  /** What a person does instead of installing, line by line. */
  readonly configure: readonly string[];
}
