import type { NamedEndpoints, Way } from "./choose-way.ts";
import type { KafkaOptions } from "./kafka-process.ts";
import type { Machine } from "./machine.ts";
import type { Log, PartName } from "./parts.ts";
import type { PostgresOrigin } from "./postgres-binaries.ts";
import type { PostgresSettings } from "./postgres-process.ts";

export interface StackPlace {
  /** The project folder; everything is kept below its `.fabric/`. */
  readonly rootDir: string;
  /** Stacks of different names run side by side. Default `local`. */
  readonly name?: string;
  readonly log?: Log;
  readonly machine?: Machine;
}

export interface UpOptions extends StackPlace {
  /** True: the stack stays until `downStack`. False: it ends with its last user. */
  readonly detach: boolean;
  readonly endpoints?: NamedEndpoints;
  readonly way?: "docker" | "local";
  readonly kafka?: KafkaOptions;
  /** Server settings, e.g. `{ wal_level: "logical" }`. */
  readonly postgres?: PostgresSettings;
  /** Whose PostgreSQL runs as a local process. Default: the system's, else npm's. */
  readonly postgresFrom?: PostgresOrigin;
  /** Ends a start that takes too long for the caller. */
  readonly signal?: AbortSignal;
}

/** Where a stack answers. */
export interface StackEndpoints {
  readonly kafkaBrokers: string[];
  /** The Confluent-compatible address, `…/apis/ccompat/v7`. */
  readonly registryUrl: string;
  /** As superuser, for a stack that we started. */
  readonly postgresUrl: string;
}

export interface StackHandle extends StackEndpoints {
  readonly way: Way;
  /** Why this way. */
  readonly reason: string;
  readonly versions: Readonly<Record<string, string>>;
  readonly pids: Partial<Record<PartName, number>>;
  /** Gives the stack up: it ends unless others use it, or somebody asked for it to stay. */
  stop(): Promise<void>;
  /** Ends one server in good order. */
  stopPart(part: PartName): Promise<void>;
  /** Starts one server that was stopped or killed, on the same ports. */
  start(part: PartName): Promise<void>;
  restart(part: PartName): Promise<void>;
  /** Sends a signal to one server (default SIGKILL) and, when it is deadly, waits for its end. */
  kill(part: PartName, signal?: NodeJS.Signals): Promise<void>;
}

export interface PartStatus {
  readonly name: PartName;
  readonly healthy: boolean;
  readonly pid?: number;
}

export interface StackStatus extends Partial<StackEndpoints> {
  readonly way: Way | "none";
  readonly detached: boolean;
  readonly users: number;
  readonly versions: Readonly<Record<string, string>>;
  readonly parts: readonly PartStatus[];
}
