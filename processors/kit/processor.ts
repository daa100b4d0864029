import type { EventType } from "../../schemas/catalog.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import type { Emission } from "./emission.ts";
import type { Transaction } from "./transaction.ts";

/** Where an event came from: the record's place in the log. */
export interface Source {
  /** The topic's name on the broker, prefix included. */
  readonly topic: string;
  readonly partition: number;
  readonly offset: bigint;
  /** The record's own timestamp, UTC milliseconds: when it was sent. Tests may leave it out. */
  readonly timestampMs?: number;
  /** When the host took the record up, UTC milliseconds, by its own clock. Tests and redrives leave it out. */
  readonly receivedMs?: number | undefined;
}

/**
 * What a platform team writes. `T` are the topics that it reads, `C` its changes, `M` the types that it may emit.
 * The host owns the rest: decoding, the inbox, the transaction, the offset, faults.
 */
export interface ProcessorDefinition<T extends EventType, C, M extends readonly EventType[] = readonly []> {
  /** Consumer group, inbox key and metric label: never renamed. Lower case, digits and dashes. */
  readonly name: string;
  /** Version of the processor's own code, recorded with each letter. */
  readonly version?: string;
  readonly topics: readonly T[];
  /** Types that `apply` may return; anything else is a fault of the processor. */
  readonly emits?: M;
  /** Pure: one event to its changes; most need no `source`. A throw buries this one event. */
  project(event: Envelope<T>, source: Source): readonly C[];
  /**
   * Set-based: all changes of a batch, in the partition's order, in the host's transaction. May return emissions.
   * A throw of poison kind makes the host split the batch until the bad event stands alone.
   */

  apply(tx: Transaction, changes: readonly C[]): Promise<void | readonly Emission<M[number]>[]>;
}

/** A processor as the host runs it: the types of topics and changes are proved and forgotten. */
export interface Processor {
  readonly name: string;
  readonly version: string;
  readonly topics: readonly EventType[];
  readonly emits: readonly EventType[];
  project(event: Envelope, source: Source): readonly unknown[];
  apply(tx: Transaction, changes: readonly unknown[]): Promise<readonly Emission[]>;
}

const nameForm = /^[a-z][a-z0-9-]{0,62}$/;

/**
 * Defines a processor. A topic that does not exist, a field that the event does not have, or an emission that `emits`
 * does not list is a compile error. Throws on a name that cannot be a consumer group, or on no topics.
 */
export function defineProcessor<
  const T extends EventType,
  C,
  const M extends readonly EventType[] = readonly [],
>(definition: ProcessorDefinition<T, C, M>): Processor {
  if (!nameForm.test(definition.name)) {
    throw new Error(`\`${definition.name}\` is no processor name: use lower case letters, digits and dashes`);
  }
  if (definition.topics.length === 0) throw new Error(`processor \`${definition.name}\` reads no topic`);
  if (new Set(definition.topics).size !== definition.topics.length) {
    throw new Error(`processor \`${definition.name}\` lists a topic twice`);
  }
  return {
    name: definition.name,
    version: definition.version ?? "1",
    topics: definition.topics,
    emits: definition.emits ?? [],
    project: (event, source) => definition.project(event as Envelope<T>, source),
    apply: async (tx, changes) => (await definition.apply(tx, changes as readonly C[])) ?? [],
  };
}
