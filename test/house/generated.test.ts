import { describe, expect, it } from "vitest";
import type { AvroEnum, AvroRecord } from "../../schemas/avro-json.ts";
import { catalog } from "../../schemas/catalog.ts";
import { composeSchema } from "../../schemas/compose.ts";
import { emitTypes } from "../../schemas/emit-types.ts";
import { productFiles, textOf } from "./files.ts";

const parse = (path: string): unknown => JSON.parse(textOf(path) ?? "null");

const envelope = parse("schemas/envelope.avsc") as AvroRecord;
const shared = parse("schemas/shared.avsc") as AvroEnum[];
const types = Object.keys(catalog);
const summaries = new Map(
  types.map((type) => [type, parse(`schemas/events/${type}.avsc`) as AvroRecord] as const),
);
const remedy = "stale: run `make generate` and commit what it writes";

describe("generated schemas", () => {
  it.each(types)("%s says what its sources say", (type) => {
    const summary = summaries.get(type);
    if (summary === undefined) throw new Error(`${type} has no source`);
    expect(parse(`schemas/generated/${type}.avsc`), remedy).toEqual(
      composeSchema(type, envelope, summary, shared),
    );
  });

  it("hold a file for each type, and no other", () => {
    const present = productFiles(".avsc").filter((file) => file.startsWith("schemas/generated/"));
    expect(present, remedy).toEqual(types.map((type) => `schemas/generated/${type}.avsc`).sort());
  });

  it("give TypeScript the same records", () => {
    expect(textOf("schemas/generated/types.ts"), remedy).toBe(emitTypes(envelope, shared, summaries));
  });
});
