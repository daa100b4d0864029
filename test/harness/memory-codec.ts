import { eventTypes } from "../../schemas/catalog.ts";
import { eventSchema } from "../../schemas/event-schemas.ts";
import { Fault } from "../../schemas/faults.ts";
import { EventCodec } from "../../services/platform/avro.ts";

const idOfType = new Map(eventTypes.map((type, index) => [type as string, index + 1]));

/** A codec whose registry is in memory: the schemas of the catalogue under ids of its own. */
export const memoryCodec = (): EventCodec =>
  new EventCodec({
    schemaIds: idOfType,
    source: {
      schemaById(schemaId) {
        const type = eventTypes[schemaId - 1];
        return type === undefined
          ? Promise.reject(new Fault("SCHEMA_ID_UNKNOWN", `schema ${String(schemaId)}`))
          : Promise.resolve(eventSchema(type));
      },
    },
  });
