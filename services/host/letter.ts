import type { Processor } from "../../processors/kit/processor.ts";
import type { EventType } from "../../schemas/catalog.ts";
import { catalog } from "../../schemas/catalog.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import { draft, toEnvelope } from "../../schemas/envelope.ts";
import type { Fault } from "../../schemas/faults.ts";
import type { DataClass } from "../../schemas/generated/types.ts";
import { derivedUuid } from "../platform/ids.ts";
import type { LogRecord, TopicPartition } from "../platform/kafka-consumer.ts";
import { maskText } from "../platform/mask.ts";

/** Owns what belongs to no tenant that is known: records that could not be read, gaps. */
export const systemTenant = "fabric";
/** Longest detail of a letter, in characters. */
const detailMaxChars = 512;
/** Who looks at a letter, and who may send it again, unless an operator assigns it. */
const accountable = "sre";
/** Tenant names that the vault has keys for. */
const tenantForm = /^[a-z0-9-]{1,64}$/;

/**
 * An input that was set aside, before its bytes are sealed. Its event stays claimed in the inbox, whichever step failed:
 * a later redrive releases the claim in its own transaction.
 */
export interface Letter {
  readonly id: string;
  readonly kind: "quarantine" | "dead";
  readonly fault: Fault;
  /** Masked. */
  readonly detail: string;
  readonly attempts: number;
  readonly tenantId: string;
  readonly dataClass: DataClass;
  readonly processorName: string;
  readonly processorVersion: string;
  readonly source: TopicPartition;
  readonly record: LogRecord;
  readonly eventUuid: string | null;
  readonly accountable: string;
  readonly redeliverRole: string;
  /** What is published about it; null for a letter about a letter. */
  readonly notice: Envelope<"fabric.letter.buried"> | null;
}

export interface LetterContext {
  readonly processor: Pick<Processor, "name" | "version">;
  readonly source: TopicPartition;
  /** The event type that the source topic carries. */
  readonly type: EventType;
  readonly environment: string;
  readonly nowMs: number;
  /** What became of the record before: it was a letter already, and a redrive brings it back. */
  readonly earlier?: (record: LogRecord) => EarlierTries | null;
}

/** Tries that a letter has behind it. */
export interface EarlierTries {
  readonly attempts: number;
  /** How many of them were redrives. */
  readonly redrives: number;
}

/** Who owns the letter about an event, or about a record that could not be read. */
export const letterTenant = (event: Pick<Envelope, "tenant_id"> | null): string =>
  event !== null && tenantForm.test(event.tenant_id) ? event.tenant_id : systemTenant;

/** Makes the letter of one record. `event` is what it was read as; without one it could not be understood. */
export function toLetter(
  record: LogRecord,
  event: Envelope | null,
  fault: Fault,
  tries: number,
  context: LetterContext,
): Letter {
  const { processor, source, type } = context;
  const earlier = context.earlier?.(record) ?? null;
  const attempts = tries + (earlier?.attempts ?? 0);
  const id = derivedUuid(
    `letter/${processor.name}/${source.topic}/${source.partition}/${record.offset}/${record.timestampMs}`,
  );
  const kind = event === null ? "quarantine" : "dead";
  const tenantId = letterTenant(event);
  const detail = [...maskText(fault.message)].slice(0, detailMaxChars).join("");
  const eventUuid = event === null ? null : event.event_id.slice("evt_".length);
  return {
    id,
    kind,
    fault,
    detail,
    attempts,
    tenantId,
    dataClass: catalog[type].dataClass,
    processorName: processor.name,
    processorVersion: processor.version,
    source,
    record,
    eventUuid,
    accountable,
    redeliverRole: accountable,
    // INVARIANT: a letter about a letter writes no event (letter.test.ts "says nothing about a letter about a letter").
    notice:
      type === "fabric.letter.buried"
        ? null
        : toEnvelope(
            draft("fabric.letter.buried", {
              letter_id: id,
              kind,
              fault_kind: fault.kind,
              code: fault.code,
              detail,
              consumer: processor.name,
              consumer_version: processor.version,
              attempts,
              source_topic: source.topic,
              source_partition: source.partition,
              source_offset: record.offset,
              source_event_id: event?.event_id ?? null,
              accountable,
            }),
            {
              // Each return of a letter is a fact of its own; the letter is the same.
              eventId: `evt_${derivedUuid(`letter-event/${id}${earlier === null ? "" : `/${String(earlier.redrives + 1)}`}`)}`,
              recordedAtMs: context.nowMs,
              tenantId,
              environment: context.environment,
              runtime: hostRuntime,
              correlationId: event?.correlation_id ?? `cor_${id}`,
              origin: `processor:${processor.name}`,
              causationId: event?.event_id ?? null,
              hopCount: (event?.hop_count ?? 0) + 1,
              automationDepth: event?.automation_depth ?? 0,
            },
          ),
  };
}

/** The host as the producer of an event. */
export const hostRuntime = {
  kind: "fabric",
  adapter_version: "1",
  runtime_version: null,
  permission_mode: null,
  sandbox: null,
} as const;
