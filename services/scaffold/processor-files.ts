import type { EventType } from "../../schemas/catalog.ts";
import { isEventType } from "../../schemas/catalog.ts";
import { Fault } from "../../schemas/faults.ts";
import { nearestTypes } from "./nearest-types.ts";
import { toSampleSummary } from "./sample-summary.ts";

/** What a new processor consists of: paths from the project's folder, with their text. */
export interface NewProcessor {
  readonly files: ReadonlyMap<string, string>;
  /** The list of processors with the new one in it. */
  readonly list: string;
}

/** The file that lists the processors. */
export const processorList = "services/app/processors.ts";

const nameForm = /^(?=.{2,41}$)[a-z][a-z0-9]*(-[a-z0-9]+)*$/;
/** Words that cannot be a constant's name. */
const reserved = new Set(
  (
    "await break case catch class const continue debugger default delete do else enum eval export extends false finally for " +
    "function if implements import in instanceof interface let new null package private protected public return static " +
    "super switch this throw true try typeof var void while with yield arguments undefined processors"
  ).split(" "),
);

/**
 * Writes a processor that counts its events per tenant, day and type: it compiles, its test passes, and it is there to be
 * changed. `taken` are names of schemas and folders that exist. Throws USAGE, naming what would be right.
 */
export function toProcessorFiles(asked: {
  readonly name: string;
  readonly topics: readonly string[];
  readonly taken: readonly string[];
  readonly list: string;
}): NewProcessor {
  const { name } = asked;
  if (!nameForm.test(name) || reserved.has(name) || name.startsWith("pg-"))
    throw new Fault(
      "USAGE",
      `\`${name}\` is no name for a processor: 2 to 41 lower case letters, digits and single dashes, a letter first, and no reserved word`,
    );
  if (asked.taken.includes(name))
    throw new Fault(
      "USAGE",
      `\`${name}\` is taken: a folder of processors/ or deploy/migrations/ has that name`,
    );
  const topics = toTopics(asked.topics);
  return {
    files: new Map([
      [`processors/${name}/${name}.ts`, toProcessor(name, topics)],
      [`processors/${name}/${name}.test.ts`, toTest(name, topics)],
      [`deploy/migrations/${name}/0001_${toTable(name)}.sql`, toMigration(name)],
    ]),
    list: toList(asked.list, name),
  };
}

function toTopics(names: readonly string[]): readonly [EventType, ...EventType[]] {
  const topics = [...new Set(names)].map((name) => {
    if (!isEventType(name))
      throw new Fault(
        "USAGE",
        `there is no event type \`${name}\`; near it are ${nearestTypes(name).join(", ")}`,
      );
    return name;
  });
  const [first, ...rest] = topics;
  if (first === undefined) throw new Fault("USAGE", "name at least one --topic");
  return [first, ...rest];
}

const toConstant = (name: string): string =>
  name.replaceAll(/-([a-z0-9])/g, (_whole, letter: string) => letter.toUpperCase());

/** Names of files of migrations and of tables have no dashes. */
const toTable = (name: string): string => name.replaceAll("-", "_");

const toProcessor = (
  name: string,
  topics: readonly EventType[],
): string => `import { defineProcessor } from "../kit/processor.ts";

/** Counts events per tenant, UTC day and type. */
export const ${toConstant(name)} = defineProcessor({
  name: "${name}", // consumer group, inbox key, metric label: never renamed
  topics: [${topics.map((one) => JSON.stringify(one)).join(", ")}],
  project: (event) => [
    {
      tenant: event.tenant_id,
      day: new Date(event.recorded_at).toISOString().slice(0, 10),
      type: event.type,
    },
  ],
  apply: async (tx, changes) => {
    await tx.query({
      text: \`INSERT INTO ${toTable(name)} (tenant_id, day, event_type, events)
             SELECT tenant, day, type, count(*) FROM unnest($1::text[], $2::date[], $3::text[]) AS c (tenant, day, type)
             GROUP BY tenant, day, type
             ON CONFLICT (tenant_id, day, event_type) DO UPDATE SET events = ${toTable(name)}.events + excluded.events\`,
      values: [changes.map((c) => c.tenant), changes.map((c) => c.day), changes.map((c) => c.type)],
    });
  },
});
`;

const toTest = (
  name: string,
  [first]: readonly [EventType, ...EventType[]],
): string => `import { describe, expect, it } from "vitest";
import { draft } from "../../schemas/envelope.ts";
import { eventOf, given } from "../kit/given.ts";
import { ${toConstant(name)} } from "./${name}.ts";

const event = eventOf(draft(${JSON.stringify(first)}, ${toSampleSummary(first)}), {
  recordedAtMs: Date.UTC(2026, 0, 2, 3),
});

describe("${name}", () => {
  it("counts an event on its UTC day", async () => {
    const { changes, statements } = await given(${toConstant(name)}).when(event);
    expect(changes).toEqual([{ tenant: "acme", day: "2026-01-02", type: ${JSON.stringify(first)} }]);
    expect(statements).toHaveLength(1);
  });
});
`;

const toMigration = (name: string): string => `CREATE TABLE ${toTable(name)} (
  tenant_id  text   COLLATE "C" NOT NULL,
  day        date   NOT NULL,
  event_type text   NOT NULL,
  events     bigint NOT NULL,
  PRIMARY KEY (tenant_id, day, event_type)
);

-- For a view in schema analytics: analysts then see the rows of their own tenants, and no others.
SELECT access.protect('${toTable(name)}', 'tenant_id');
`;

/** Adds the import after the last one, and the constant at the end of the list. */
function toList(text: string, name: string): string {
  const constant = toConstant(name);
  const listed = text.replace(
    /(export const processors[^=]*= \[)([^\]]*?),?\s*\];/,
    (_whole, head: string, items: string) => `${head}${items}, ${constant}];`,
  );
  const lastImport = listed.lastIndexOf("\nimport ");
  const end = listed.indexOf("\n", lastImport + 1);
  if (listed === text || lastImport < 0)
    throw new Fault("INTERNAL", `\`${processorList}\` is not as expected; add the processor by hand`);
  return `${listed.slice(0, end)}\nimport { ${constant} } from "../../processors/${name}/${name}.ts";${listed.slice(end)}`;
}
