import type avsc from "avsc";
import type { AvroRecord, AvroSchema } from "../../schemas/avro-json.ts";
import type { EventType } from "../../schemas/catalog.ts";
import { catalog } from "../../schemas/catalog.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import { eventSchemas } from "../../schemas/event-schemas.ts";
import { Fault } from "../../schemas/faults.ts";
import type { Reading } from "./avro-resolution.ts";
import { toReading } from "./avro-resolution.ts";
import { toType } from "./avro-types.ts";
import { decodeConfluent, encodeConfluent, schemaIdOf } from "./confluent-wire.ts";

/** Where writers' schemas come from: the registry. Throws SCHEMA_ID_UNKNOWN or REGISTRY_UNAVAILABLE. */
export interface SchemaSource {
  schemaById(schemaId: number): Promise<AvroSchema>;
}

/** One decoded record. Its envelope has our schema's fields, whatever version wrote it. */
export interface DecodedEvent {
  readonly envelope: Envelope;
  readonly schemaId: number;
}

/** One encoded event, Confluent-framed. */
export interface EncodedEvent {
  readonly schemaId: number;
  readonly bytes: Buffer;
}

export interface EventCodecOptions {
  readonly source: SchemaSource;
  /** Event type → id that the registry gave our schema; from `contracts.schema_ids`. Decoding needs none. */
  readonly schemaIds?: ReadonlyMap<string, number>;
  /** Our own schemas, which every record is read as; the generated ones unless a test says otherwise. */
  readonly schemas?: ReadonlyMap<string, AvroRecord>;
  /** Highest major of `schema_version` that this process understands, by type; the catalogue's by default. */
  readonly majors?: ReadonlyMap<string, number>;
}

type Reader = {
  readonly eventType: string;
  readonly schema: AvroRecord;
  readonly type: avsc.Type;
  readonly major: number;
};
type Verdict = (Reading & { readonly reader: Reader }) | { readonly refusal: string };

/**
 * Events ↔ Confluent-framed Avro. Records are resolved from the writer's schema to ours, and refused by the rules of
 * `mayRead`. Every failure is a `Fault`; a null value (tombstone) is the caller's business.
 */
export class EventCodec {
  readonly #source: SchemaSource;
  readonly #schemaIds: ReadonlyMap<string, number>;
  readonly #readersByName = new Map<string, Reader>();
  readonly #readersByType = new Map<string, Reader>();
  readonly #verdicts = new Map<number, Verdict>();
  readonly #fetches = new Map<number, Promise<Verdict>>();

  constructor(options: EventCodecOptions) {
    this.#source = options.source;
    this.#schemaIds = options.schemaIds ?? new Map();
    for (const [eventType, schema] of options.schemas ?? eventSchemas) {
      const type = toType(schema);
      const reader = {
        eventType,
        schema,
        type,
        major: options.majors?.get(eventType) ?? catalogMajor(eventType),
      };
      this.#readersByName.set(type.name ?? "", reader);
      this.#readersByType.set(eventType, reader);
    }
  }

  /** Throws SCHEMA_NOT_REGISTERED, RECORD_UNENCODABLE or VALUE_OUT_OF_RANGE. */
  encode(envelope: Envelope): EncodedEvent {
    const reader = this.#readersByType.get(envelope.type);
    if (reader === undefined)
      throw new Fault("RECORD_UNENCODABLE", `${envelope.type} is not in the catalogue`);
    const schemaId = this.#schemaIds.get(envelope.type);
    if (schemaId === undefined) {
      throw new Fault("SCHEMA_NOT_REGISTERED", `${envelope.type}: run \`fabric schema register\``);
    }
    return { schemaId, bytes: encodeConfluent(schemaId, reader.type, envelope) };
  }

  /**
   * Throws NOT_AVRO, SCHEMA_ID_UNKNOWN, REGISTRY_UNAVAILABLE, SCHEMA_REFUSED, RECORD_UNDECODABLE or
   * VALUE_OUT_OF_RANGE. A schema id is fetched once, however many wait for it; a failed fetch is forgotten.
   */
  async decode(bytes: Buffer): Promise<DecodedEvent> {
    const schemaId = schemaIdOf(bytes);
    return readAs(this.#verdicts.get(schemaId) ?? (await this.#fetchVerdict(schemaId)), schemaId, bytes);
  }

  /** `decode` at once, for a writer's schema that is known already; null for one that has to be asked for. */
  decodeNow(bytes: Buffer): DecodedEvent | null {
    const schemaId = schemaIdOf(bytes);
    const verdict = this.#verdicts.get(schemaId);
    return verdict === undefined ? null : readAs(verdict, schemaId, bytes);
  }

  #fetchVerdict(schemaId: number): Promise<Verdict> {
    const under = this.#fetches.get(schemaId);
    if (under !== undefined) return under;
    const fetching = this.#source
      .schemaById(schemaId)
      .then((writerSchema) => {
        const verdict = this.#judge(writerSchema);
        this.#verdicts.set(schemaId, verdict);
        return verdict;
      })
      .finally(() => this.#fetches.delete(schemaId));
    this.#fetches.set(schemaId, fetching);
    return fetching;
  }

  #judge(writerSchema: AvroSchema): Verdict {
    const name = recordName(writerSchema);
    const reader = this.#readersByName.get(name);
    if (reader === undefined)
      return { refusal: `no event type here has the record ${name === "" ? "without a name" : name}` };
    const reading = toReading(writerSchema, reader.schema, reader.type);
    return reading.ok
      ? { type: reading.type, resolver: reading.resolver, reader }
      : { refusal: reading.reason };
  }
}

function readAs(verdict: Verdict, schemaId: number, bytes: Buffer): DecodedEvent {
  if ("refusal" in verdict) throw new Fault("SCHEMA_REFUSED", `schema ${schemaId}: ${verdict.refusal}`);
  const envelope = decodeConfluent(bytes, verdict) as Envelope;
  checkVersion(envelope, verdict.reader);
  return { envelope, schemaId };
}

function checkVersion(envelope: Envelope, reader: Reader): void {
  if ((envelope.type as string) !== reader.eventType) {
    throw new Fault(
      "RECORD_UNDECODABLE",
      `the record is ${reader.eventType} and its type field says otherwise`,
    );
  }
  const match = /^(\d{1,6})\.\d{1,6}$/.exec(envelope.schema_version);
  if (match === null) throw new Fault("RECORD_UNDECODABLE", "schema_version is not major.minor");
  const major = Number(match[1]);
  if (major > reader.major) {
    throw new Fault(
      "SCHEMA_REFUSED",
      `${reader.eventType} ${envelope.schema_version} is newer than major ${reader.major}: upgrade this consumer`,
    );
  }
}

function catalogMajor(eventType: string): number {
  const entry = (catalog as Readonly<Record<string, { readonly version: string }>>)[eventType as EventType];
  return Number.parseInt(entry?.version ?? "1", 10);
}

function recordName(schema: AvroSchema): string {
  if (typeof schema === "string" || Array.isArray(schema) || !("name" in schema) || schema.name === undefined)
    return "";
  const namespace = "namespace" in schema ? schema.namespace : undefined;
  return schema.name.includes(".") || namespace === undefined ? schema.name : `${namespace}.${schema.name}`;
}
