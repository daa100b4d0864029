import { describe, expect, it } from "vitest";
import { eventTypes } from "../../schemas/catalog.ts";
import { draft } from "../../schemas/envelope.ts";
import { eventOf, given } from "../kit/given.ts";
import { audit } from "./audit.ts";
import { toDigests, toRowDigest } from "./row-digest.ts";
import { digestsOfStoredRow } from "./stored-row.ts";
import { renderWho, toWhoReport } from "./who.ts";
import { toAuditRow } from "./words.ts";

const source = { topic: "agent.model.completed", partition: 1, offset: 9n };
const model = (tokens: bigint, name = "m") =>
  eventOf(
    draft("agent.model.completed", {
      model: name,
      outcome: "succeeded",
      input_tokens: tokens,
      cached_input_tokens: null,
      cache_write_tokens: null,
      output_tokens: 1n,
      reasoning_tokens: null,
      duration_ms: null,
      cost_micros: null,
      error_kind: null,
      model_call_id: null,
    }),
  );

describe("audit", () => {
  it("reads every type but its own seals, and emits nothing", () => {
    expect([...audit.topics].sort()).toEqual(
      eventTypes.filter((type) => type !== "fabric.audit.sealed").sort(),
    );
    expect(audit.emits).toEqual([]);
  });

  it("appends one row per event in one statement", async () => {
    const { changes, statements } = await given(audit).when(model(1n), model(2n));
    expect(changes).toHaveLength(2);
    expect(statements).toHaveLength(1);
  });

  it("keeps whole numbers exact: those that a double cannot hold become text", () => {
    expect(toAuditRow(model(2n ** 53n - 1n), source).summary).toMatchObject({ input_tokens: 2 ** 53 - 1 });
    expect(toAuditRow(model(2n ** 60n), source).summary).toMatchObject({
      input_tokens: "1152921504606846976",
    });
  });

  it("replaces what Postgres text cannot hold, and shows that it was there", () => {
    expect(toAuditRow(model(1n, "a\u0000b"), source).summary).toMatchObject({ model: "a\uFFFDb" });
    expect(toAuditRow({ ...model(1n), correlation_id: "c\u0000" }, source).correlation_id).toBe("c\uFFFD");
  });
});

describe("row digest", () => {
  // As version 1.0 of the type had it: rows that were written then have this form for good.
  const asWritten = (event: ReturnType<typeof model>): typeof event => {
    const { model_call_id: _later, ...summary } = event.redacted_summary;
    return { ...event, schema_version: "1.0", redacted_summary: summary as typeof event.redacted_summary };
  };
  const row = toAuditRow(asWritten(model(5n)), source);

  it("changes with every field of the row", () => {
    const seen = new Set([row.row_digest.toString("hex")]);
    const names = Object.keys(row).filter((name) => !/digest$|^digest_version$/.test(name));
    for (const name of names) seen.add(toDigests({ ...row, [name]: "another" }).row.toString("hex"));
    expect(seen.size).toBe(names.length + 1);
    expect(names.length).toBeGreaterThan(40);
  });

  it("tells a null from an empty text, and one field's end from the next one's begin", () => {
    const of = (change: object) => toDigests({ ...row, ...change }).row.toString("hex");
    expect(of({ user_id: null })).not.toBe(of({ user_id: "" }));
    expect(of({ tool: "a", action: "b" })).not.toBe(of({ tool: "a\naction:1:b", action: null }));
  });

  it("does not depend on the order of keys in the summary", () => {
    const one = toDigests({ ...row, summary: { a: 1, b: { c: [1], d: null } } });
    expect(toDigests({ ...row, summary: { b: { d: null, c: [1] }, a: 1 } })).toEqual(one);
  });

  it("can be made anew from an erased row, and not from one whose digest was touched", () => {
    const erased = { ...row, summary: null, user_id: null, erased_at: new Date(0) };
    expect(digestsOfStoredRow(erased).row).toEqual(row.row_digest);
    expect(toRowDigest(row, Buffer.alloc(32))).not.toEqual(row.row_digest);
  });

  // The byte form is a contract with every row that was ever written: a change is a new version.
  it("keeps its byte form", () => {
    expect(row.row_digest.toString("hex")).toMatchInlineSnapshot(
      `"23c7d7749e76701c1fdce8fcea921c38f7714a2838b49785a4330d0b1214e87a"`,
    );
    expect(row.content_digest.toString("hex")).toMatchInlineSnapshot(
      `"3c74b184cd20b182f4d70820d54627fb4842deed87459c8b7ac3ad5ff2ee1a52"`,
    );
  });
});

describe("who", () => {
  it("says what to do when nothing is found", () => {
    expect(renderWho(toWhoReport("call_1", []))).toMatch(/check the id/);
  });
});
