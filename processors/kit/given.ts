import type { EventType } from "../../schemas/catalog.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import { toEnvelope } from "../../schemas/envelope.ts";
import type { Draft, EnvelopeContext } from "../../schemas/envelope.ts";
import type { Emission } from "./emission.ts";
import type { Processor } from "./processor.ts";
import type { Transaction, TransactionStatement } from "./transaction.ts";

/** A complete event for tests, made from a draft; `context` overrides what is not under test. */
export function eventOf<T extends EventType>(
  draft: Draft<T>,
  context: Partial<EnvelopeContext> = {},
): Envelope<T> {
  return toEnvelope(draft, {
    eventId: "evt_01900000-0000-7000-8000-000000000001",
    recordedAtMs: 1_767_225_600_000,
    tenantId: "acme",
    environment: "test",
    runtime: {
      kind: "test",
      adapter_version: "1",
      runtime_version: null,
      permission_mode: null,
      sandbox: null,
    },
    correlationId: "cor_1",
    origin: "human",
    ...context,
  });
}

/** A statement that a processor ran, as the test sees it. */
export interface RanStatement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** A transaction that records its statements and answers each with `answer`, or with no rows. */
export function recordingTransaction(
  answer: (statement: RanStatement) => readonly unknown[] = () => [],
): Transaction & { readonly statements: readonly RanStatement[] } {
  const statements: RanStatement[] = [];
  return {
    statements,
    query<R>(statement: TransactionStatement | string, values?: readonly unknown[]) {
      const ran =
        typeof statement === "string"
          ? { text: statement, values: values ?? [] }
          : { text: statement.text, values: statement.values ?? values ?? [] };
      statements.push(ran);
      const rows = answer(ran) as R[];
      return Promise.resolve({ rows, rowCount: rows.length });
    },
  };
}

/** What came of the events that a test handed to a processor. */
export interface Outcome {
  readonly changes: readonly unknown[];
  readonly statements: readonly RanStatement[];
  readonly emissions: readonly Emission[];
}

/**
 * `given(processor).when(events)`: projects the events in order and applies the changes to a recording transaction.
 * Event n comes from offset n of partition 0 of its topic. One of a topic that the processor does not read is refused:
 * the host would never deliver it.
 */
export function given(
  processor: Processor,
  answer?: (statement: RanStatement) => readonly unknown[],
): { when(...events: readonly Envelope[]): Promise<Outcome> } {
  return {
    async when(...events) {
      const stray = events.find((event) => !processor.topics.includes(event.type));
      if (stray !== undefined) throw new Error(`\`${processor.name}\` does not read ${stray.type}`);
      const changes = events.flatMap((event, index) =>
        processor.project(event, { topic: event.type, partition: 0, offset: BigInt(index) }),
      );
      const tx = recordingTransaction(answer);
      const emissions = await processor.apply(tx, changes);
      return { changes, statements: tx.statements, emissions };
    },
  };
}
