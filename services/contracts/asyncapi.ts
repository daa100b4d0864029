import { stringify } from "yaml";
import type { EventType } from "../../schemas/catalog.ts";
import { catalog, isEventType } from "../../schemas/catalog.ts";
import { toRecordName } from "../../schemas/compose.ts";
import type { SchemaSources } from "./sources.ts";
import { topicConfigs } from "./topics.ts";

const avroFormat = "application/vnd.apache.avro+json;version=1.9.0";

/**
 * The AsyncAPI 3 document of all topics: one channel and one message per event type, the Avro schema beside it, headers
 * in CloudEvents binary mode. Made from the catalogue and the sources alone.
 */
export function toAsyncapi(sources: SchemaSources): string {
  const types = [...sources.summaries.keys()].filter(isEventType);
  const document = {
    asyncapi: "3.0.0",
    info: {
      title: "Policy Hook Fabric",
      version: "1.0.0",
      description: "Topics of the fabric. One topic per event type; values are Confluent-framed Avro.",
      license: { name: "Apache-2.0" },
    },
    defaultContentType: "application/avro",
    channels: Object.fromEntries(types.map((type) => [type, toChannel(type)])),
    operations: Object.fromEntries(types.map((type) => [`publish${toRecordName(type)}`, toOperation(type)])),
    components: {
      messageTraits: { event: { headers: toHeaders() } },
    },
  };
  return `# Generated from schemas/*.avsc and schemas/catalog.ts by \`fabric schema generate\`. Do not edit.\n${stringify(document, { lineWidth: 0, aliasDuplicateObjects: false })}`;
}

function toChannel(type: EventType): object {
  const entry = catalog[type];
  const configs = topicConfigs(entry);
  return {
    address: type,
    description: entry.summary,
    messages: { [toRecordName(type)]: toMessage(type) },
    bindings: {
      kafka: {
        topic: type,
        partitions: entry.partitions,
        topicConfiguration: {
          "cleanup.policy": [configs["cleanup.policy"]],
          "retention.ms": entry.retentionMs,
        },
        bindingVersion: "0.5.0",
      },
    },
    "x-class": entry.class,
    "x-owner": entry.owner,
    "x-data-class": entry.dataClass,
  };
}

function toMessage(type: EventType): object {
  const entry = catalog[type];
  return {
    name: type,
    title: toRecordName(type),
    summary: entry.summary,
    contentType: "application/avro",
    traits: [{ $ref: "#/components/messageTraits/event" }],
    payload: { schemaFormat: avroFormat, schema: { $ref: `./${type}.avsc` } },
    bindings: {
      kafka: {
        key: { type: "string", description: keyTexts[entry.key] },
        schemaIdLocation: "payload",
        schemaIdPayloadEncoding: "confluent",
        schemaLookupStrategy: "TopicNameStrategy",
        bindingVersion: "0.5.0",
      },
    },
    "x-nature": entry.nature,
    "x-schema-version": entry.version,
  };
}

function toOperation(type: EventType): object {
  return {
    action: "send",
    channel: { $ref: `#/channels/${type}` },
    messages: [{ $ref: `#/channels/${type}/messages/${toRecordName(type)}` }],
    summary: `${catalog[type].owner} publishes that ${catalog[type].summary}`,
  };
}

const keyTexts: Readonly<Record<(typeof catalog)[EventType]["key"], string>> = {
  "tenant/correlation": "tenant_id/correlation_id",
  tenant: "tenant_id",
  consumer: "name of the consumer",
};

function toHeaders(): object {
  const text = (description: string, rest: object = {}): object => ({ type: "string", description, ...rest });
  return {
    type: "object",
    required: ["ce_id", "ce_type", "ce_source", "ce_specversion", "ce_time", "content-type"],
    properties: {
      ce_id: text("event_id of the event"),
      ce_type: text("the event type, which is the topic without its prefix"),
      ce_source: text("who reports it", { format: "uri-reference" }),
      ce_specversion: text("CloudEvents version", { const: "1.0" }),
      ce_time: text("occurred_at", { format: "date-time" }),
      ce_subject: text("correlation_id"),
      ce_dataschema: text("event type and schema version", { format: "uri" }),
      "content-type": text("encoding of the value", { const: "application/avro" }),
      traceparent: text("W3C Trace Context"),
    },
  };
}
