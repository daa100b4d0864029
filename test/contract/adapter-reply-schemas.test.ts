import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const corpus = fileURLToPath(new URL("../corpus", import.meta.url));
const jsonOf = (path: string): unknown => JSON.parse(readFileSync(join(corpus, path), "utf8")) as unknown;

type Schema = Readonly<Record<string, unknown>>;

/** What of JSON Schema the client's own output schemas use. An unknown keyword fails, so that none is passed over. */
const known = [
  ...["$schema", "title", "description", "default", "definitions"],
  ...["type", "enum", "const", "properties", "required", "additionalProperties", "allOf", "$ref"],
];
function faultsOf(value: unknown, schema: Schema, root: Schema, path: string): string[] {
  const faults = Object.keys(schema).flatMap((key) =>
    known.includes(key) ? [] : [`${path}: keyword ${key}`],
  );
  if (typeof schema["$ref"] === "string") {
    const name = schema["$ref"].replace("#/definitions/", "");
    const target = (root["definitions"] as Readonly<Record<string, Schema>>)[name];
    return target === undefined ? [`${path}: no definition ${name}`] : faultsOf(value, target, root, path);
  }
  for (const part of (schema["allOf"] ?? []) as readonly Schema[])
    faults.push(...faultsOf(value, part, root, path));
  if ("const" in schema && value !== schema["const"])
    faults.push(`${path}: is not ${String(schema["const"])}`);
  if (Array.isArray(schema["enum"]) && !schema["enum"].includes(value))
    faults.push(`${path}: not in the enum`);
  const types = [schema["type"] ?? []].flat();
  const type = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
  if (types.length > 0 && !types.includes(type)) faults.push(`${path}: is ${type}`);
  if (type !== "object") return faults;
  const fields = value as Readonly<Record<string, unknown>>;
  const properties = (schema["properties"] ?? {}) as Readonly<Record<string, Schema>>;
  for (const key of (schema["required"] ?? []) as readonly string[])
    if (!(key in fields)) faults.push(`${path}: lacks ${key}`);
  for (const [key, item] of Object.entries(fields)) {
    const property = properties[key];
    if (property !== undefined) faults.push(...faultsOf(item, property, root, `${path}/${key}`));
    else if (schema["additionalProperties"] === false) faults.push(`${path}: ${key} is not known`);
  }
  return faults;
}

const schemaFolder = "hooks/codex/schemas";
const schemaOf = (event: string): Schema => {
  const name = event.replace(/(?<=[a-z])(?=[A-Z])/g, "-").toLowerCase();
  return jsonOf(`${schemaFolder}/${name}.command.output.schema.json`) as Schema;
};
interface Golden {
  readonly reply: {
    readonly body: unknown;
    readonly exitCode: number;
    readonly stdout: string;
    readonly stderr: string;
  };
}
const golden = readdirSync(join(corpus, "replies/codex"))
  .sort()
  .map((name): [string, string, Golden["reply"]] => [
    name,
    name.split(".")[0] ?? "",
    (jsonOf(`replies/codex/${name}`) as Golden).reply,
  ]);
/** Events whose output schema the client does not publish, and no event at all. */
const withoutSchema = ["SessionEnd", "PostModelRequest", "unknown-event", "no-event"];
const withSchema = golden.filter(([, event]) => !withoutSchema.includes(event));

describe("golden replies to Codex", () => {
  it.each(withSchema)("%s keeps to the client's own output schema", (_, event, reply) => {
    const schema = schemaOf(event);
    expect(faultsOf(reply.body, schema, schema, "")).toEqual([]);
    if (reply.stdout !== "") expect(JSON.parse(reply.stdout)).toEqual(reply.body);
  });

  it.each(golden)(
    "%s: a no gives its reason, and a yes prints nothing that could become context",
    (_, __, reply) => {
      const said = JSON.stringify(reply.body);
      if (/"deny"|"block"/.test(said))
        expect(said).toMatch(/"(permissionDecisionReason|message|reason)":"[^"]+/);
      expect(said).not.toMatch(/suppressOutput|"ask"|"continue"|interrupt|updatedPermissions/);
      if (said === "{}") expect([reply.exitCode, reply.stdout, reply.stderr]).toEqual([0, "", ""]);
      if (reply.exitCode === 2) expect([reply.stdout, reply.stderr.trim() !== ""]).toEqual(["", true]);
    },
  );

  it("sees a denial that the client would drop", () => {
    const schema = schemaOf("PreToolUse");
    const denial = {
      hookEventName: "PreToolUse",
      permissionDecision: "deny",
      permissionDecisionReason: "no",
    };
    expect(faultsOf({ hookSpecificOutput: denial }, schema, schema, "")).toEqual([]);
    expect(
      faultsOf({ hookSpecificOutput: { ...denial, decision_id: "x" } }, schema, schema, ""),
    ).toHaveLength(1);
    expect(
      faultsOf({ hookSpecificOutput: { ...denial, permissionDecision: "defer" } }, schema, schema, ""),
    ).toHaveLength(1);
    expect(faultsOf({ permissionDecision: "deny" }, schema, schema, "")).toHaveLength(1);
  });
});
