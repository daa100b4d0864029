import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { AvroRecord } from "../../schemas/avro-json.ts";
import { eventSchemas } from "../../schemas/event-schemas.ts";
import { checkSchemas, renderCheck } from "./check.ts";
import { generateSchemas, renderGenerate } from "./generate.ts";
import { acceptHistory } from "./history.ts";
import { listSchemas } from "./list.ts";
import { renderShow, showSchema } from "./show.ts";

const schemas = fileURLToPath(new URL("../../schemas", import.meta.url));
const event = "events/agent.turn.started.avsc";
let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "fabric-schemas-"));
  await cp(schemas, folder, { recursive: true });
});
afterEach(() => rm(folder, { recursive: true }));

async function edit(file: string, change: (schema: AvroRecord) => void): Promise<void> {
  const path = join(folder, file);
  const schema = JSON.parse(await readFile(path, "utf8")) as AvroRecord;
  change(schema);
  await writeFile(path, JSON.stringify(schema));
}
const rules = async (): Promise<string[]> => [
  ...new Set((await checkSchemas(folder)).findings.map((one) => one.rule)),
];

describe("checkSchemas", () => {
  it("finds nothing in the repository", async () => {
    expect((await checkSchemas(schemas)).findings).toEqual([]);
  });

  it("asks for a new version and for the history when a field is added under the old one", async () => {
    await edit(event, (schema) =>
      schema.fields.push({ name: "note", type: ["null", "string"], default: null }),
    );
    await generateSchemas(folder);
    expect(await rules()).toEqual(["version_not_raised", "not_in_history"]);
    await expect(acceptHistory(folder)).rejects.toMatchObject({ code: "SCHEMA_INCOMPATIBLE" });
  });

  it("finds a rename that full compatibility lets through", async () => {
    await edit("envelope.avsc", (schema) => {
      const actor = schema.fields.find((field) => field.name === "actor")?.type as AvroRecord;
      actor.fields[0] = { name: "approver_id", type: ["null", "string"], default: null };
    });
    await generateSchemas(folder);
    const report = await checkSchemas(folder);
    expect(report.findings.map((one) => one.rule)).toContain("field_renamed");
    expect(report.findings.map((one) => one.rule)).not.toContain("backward");
    expect(renderCheck(report)).toContain(
      "actor.user_id: `user_id` is gone and `approver_id` of the same type is new",
    );
  });

  it("finds what breaks either way", async () => {
    await edit(event, (schema) => schema.fields.push({ name: "needed", type: "string" }));
    expect(await rules()).toEqual(expect.arrayContaining(["default_missing", "backward", "stale"]));
    await edit(event, (schema) => schema.fields.splice(0, 2));
    expect(await rules()).toEqual(expect.arrayContaining(["field_removed", "forward"]));
  });

  it("lets a doc change, and asks only to generate", async () => {
    await edit(event, (schema) => {
      schema.doc = "A turn has begun.";
    });
    expect(await rules()).toEqual(["stale"]);
    expect((await acceptHistory(folder)).accepted).toEqual([]);
  });

  it("keeps a type that was registered once", async () => {
    await cp(join(folder, "history/agent.turn.started"), join(folder, "history/agent.turn.begun"), {
      recursive: true,
    });
    expect(await rules()).toEqual(["type_removed"]);
  });

  it("names a source without a place in the catalogue, and a place without a source", async () => {
    await cp(join(folder, event), join(folder, "events/agent.turn.begun.avsc"));
    await expect(checkSchemas(folder)).rejects.toThrow("agent.turn.begun");
    await rm(join(folder, "events/agent.turn.begun.avsc"));
    await rm(join(folder, event));
    await expect(checkSchemas(folder)).rejects.toThrow("agent.turn.started");
  });
});

describe("generateSchemas", () => {
  it("lists what is stale, missing or left over without writing, then mends it, the same way each time", async () => {
    const types = await readFile(join(folder, "generated/types.ts"), "utf8");
    await writeFile(join(folder, "generated/types.ts"), "");
    await writeFile(join(folder, "generated/agent.turn.begun.avsc"), "{}");
    await rm(join(folder, "generated/asyncapi.yaml"));
    const check = await generateSchemas(folder, { check: true });
    expect(check).toEqual({ stale: ["agent.turn.begun.avsc", "asyncapi.yaml", "types.ts"], written: false });
    expect(renderGenerate(check)).toContain("run `fabric schema generate`");
    await generateSchemas(folder);
    expect(await readFile(join(folder, "generated/types.ts"), "utf8")).toBe(types);
    expect((await generateSchemas(folder, { check: true })).stale).toEqual([]);
  });

  it("writes the schemas that running code uses", async () => {
    for (const [type, schema] of eventSchemas)
      expect(JSON.parse(await readFile(join(schemas, `generated/${type}.avsc`), "utf8"))).toEqual(schema);
  });
});

describe("list and show", () => {
  it("list every type, without a database too", async () => {
    const lines = await listSchemas(null);
    expect(lines.map((one) => one.type)).toEqual([...eventSchemas.keys()]);
  });

  it("show fields with their meaning, and name what does not exist", () => {
    const text = renderShow(showSchema("agent.turn.started"));
    expect(text).toContain("trigger: unknown | prompt | resume | subagent");
    expect(text).toContain("policy: Policy?");
    expect(() => showSchema("agent.turn.begun")).toThrow(expect.objectContaining({ code: "USAGE" }));
  });
});
