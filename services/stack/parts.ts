import type { Launch } from "./process-record.ts";
import type { PortName, Ports } from "./ports.ts";

/** The three servers of a stack. */
export const partNames = ["kafka", "postgres", "registry"] as const;
export type PartName = (typeof partNames)[number];

export type Log = (line: string) => void;

/** One server as a local process: all that starting, probing and stopping it needs. */
export interface LocalPart {
  readonly name: PartName;
  /** The process's own folder: its record, its log, its data. */
  readonly dir: string;
  readonly portNames: readonly PortName[];
  /** What a running process must have been started with to be used again. */
  settings(ports: Ports): string;
  /** Makes data and files ready; cheap when they already are. */
  prepare(ports: Ports): Promise<Launch>;
  /** True when it serves, and is ours. */
  probe(ports: Ports): Promise<boolean>;
  readonly stopSignal: NodeJS.Signals;
  readonly stopDeadlineMs: number;
  readonly readyDeadlineMs: number;
}

export const portOf = (ports: Ports, name: PortName): number => {
  const port = ports[name];
  if (port === undefined) throw new Error(`no port was chosen for ${name}`);
  return port;
};
