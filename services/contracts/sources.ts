import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { AvroEnum, AvroRecord } from "../../schemas/avro-json.ts";
import { eventTypes, isEventType } from "../../schemas/catalog.ts";
import { Fault } from "../../schemas/faults.ts";

/** The hand-written schemas of a `schemas/` folder; summaries in catalogue order. */
export interface SchemaSources {
  readonly envelope: AvroRecord;
  readonly shared: readonly AvroEnum[];
  readonly summaries: ReadonlyMap<string, AvroRecord>;
}

/** Loads `envelope.avsc`, `shared.avsc` and `events/<type>.avsc`; every type of the catalogue has exactly one. */
export async function loadSources(folder: string): Promise<SchemaSources> {
  const files = (await readdir(join(folder, "events"))).filter((name) => name.endsWith(".avsc"));
  const types = new Set(files.map((name) => name.slice(0, -".avsc".length)));
  const strangers = [...types].filter((type) => !isEventType(type));
  if (strangers.length > 0)
    throw new Fault("CONFIG_INVALID", `add ${strangers.join(", ")} to schemas/catalog.ts`);
  const missing = eventTypes.filter((type) => !types.has(type));
  if (missing.length > 0)
    throw new Fault("CONFIG_INVALID", `write schemas/events/${missing.join(".avsc, ")}.avsc`);
  const [envelope, shared, summaries] = await Promise.all([
    loadJson(join(folder, "envelope.avsc")),
    loadJson(join(folder, "shared.avsc")),
    Promise.all(
      eventTypes.map(
        async (type) =>
          [type, (await loadJson(join(folder, "events", `${type}.avsc`))) as AvroRecord] as const,
      ),
    ),
  ]);
  return {
    envelope: envelope as AvroRecord,
    shared: shared as readonly AvroEnum[],
    summaries: new Map(summaries),
  };
}

/** Reads one JSON file; the fault names it. */
export async function loadJson(path: string): Promise<unknown> {
  const text = await readFile(path, "utf8");
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw new Fault("CONFIG_INVALID", `${path} is not JSON`, { cause });
  }
}
