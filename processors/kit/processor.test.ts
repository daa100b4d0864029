import { describe, expect, it } from "vitest";
import { draft } from "../../schemas/envelope.ts";
import { toCause } from "./emission.ts";
import { eventOf, given } from "./given.ts";
import { findCycle, findRepeatedNames } from "./graph.ts";
import { defineProcessor } from "./processor.ts";

const sessionEnded = eventOf(draft("agent.session.ended", { reason: "done" }));

// Compile-time promises: each expected error is one that a team would make; tsc fails when it is none any more.
const typed = (): void => {
  defineProcessor({
    name: "x",
    // @ts-expect-error -- there is no topic of this name
    topics: ["agent.session.stopped"],
    project: () => [],
    apply: async () => undefined,
  });
  defineProcessor({
    name: "x",
    topics: ["agent.session.ended"],
    project: (event) => {
      // @ts-expect-error -- the summary of this topic has no field of this name
      const field: keyof typeof event.redacted_summary = "model";
      return [event.redacted_summary[field]];
    },
    apply: async () => undefined,
  });
  defineProcessor({
    name: "x",
    topics: ["agent.session.ended", "agent.model.completed"],
    project: (event) => (event.type === "agent.model.completed" ? [event.redacted_summary.model] : []),
    apply: async (_tx, changes) => {
      // @ts-expect-error -- a change is what project made, a string
      const numbers: readonly number[] = changes;
      await Promise.resolve(numbers);
    },
  });
  defineProcessor({
    name: "x",
    topics: ["agent.session.ended"],
    emits: ["fabric.gap.found"],
    project: (event) => [toCause(event)],
    apply: async (_tx, changes) =>
      // @ts-expect-error -- a type that emits does not list
      changes.map((cause) => ({
        dedupeKey: "a",
        cause,
        draft: draft("agent.session.ended", { reason: null }),
      })),
  });
  defineProcessor({
    name: "x",
    topics: ["agent.session.ended"],
    // @ts-expect-error -- project is pure and gives its changes at once
    project: async () => Promise.resolve([]),
    apply: async () => undefined,
  });
};

describe("defineProcessor", () => {
  it("refuses at compile time a wrong topic, a wrong field, an undeclared emission and an async projection", () => {
    expect(typed).toBeTypeOf("function");
  });

  it("is fifteen lines for a team, and its test three", async () => {
    const ended = defineProcessor({
      name: "ended",
      topics: ["agent.session.ended"],
      project: (event) => [{ tenant: event.tenant_id, reason: event.redacted_summary.reason }],
      apply: async (tx, changes) => {
        await tx.query("INSERT INTO ended SELECT * FROM unnest($1::text[])", [
          changes.map((one) => one.reason),
        ]);
      },
    });
    const { changes, statements, emissions } = await given(ended).when(sessionEnded);
    expect(changes).toEqual([{ tenant: "acme", reason: "done" }]);
    expect(statements).toMatchObject([{ values: [["done"]] }]);
    expect(emissions).toEqual([]);
  });

  it("refuses a name that is no consumer group, no topic, and a topic twice", () => {
    const rest = { project: () => [], apply: () => Promise.resolve() };
    expect(() => defineProcessor({ name: "Cost", topics: ["agent.session.ended"], ...rest })).toThrow(/name/);
    expect(() => defineProcessor({ name: "cost", topics: [], ...rest })).toThrow(/no topic/);
    expect(() =>
      defineProcessor({ name: "cost", topics: ["agent.session.ended", "agent.session.ended"], ...rest }),
    ).toThrow(/twice/);
  });

  it("refuses in a test what the host would never deliver", async () => {
    const other = defineProcessor({
      name: "other",
      topics: ["agent.session.started"],
      project: () => [],
      apply: () => Promise.resolve(),
    });
    await expect(given(other).when(sessionEnded)).rejects.toThrow(/does not read/);
  });
});

describe("graph", () => {
  it("finds no circle where events flow one way", () => {
    expect(
      findCycle([
        { name: "a", topics: ["agent.tool.completed"], emits: ["fabric.gap.found"] },
        { name: "b", topics: ["fabric.gap.found", "agent.tool.completed"], emits: [] },
      ]),
    ).toBeNull();
  });

  it("names the circle, over one processor or several", () => {
    expect(findCycle([{ name: "a", topics: ["agent.tool.denied"], emits: ["agent.tool.denied"] }])).toEqual([
      "agent.tool.denied",
      "a",
      "agent.tool.denied",
    ]);
    expect(
      findCycle([
        { name: "x", topics: ["agent.session.ended"], emits: ["agent.tool.requested"] },
        { name: "a", topics: ["agent.tool.requested"], emits: ["agent.tool.denied"] },
        { name: "b", topics: ["agent.tool.denied"], emits: ["agent.tool.requested"] },
      ]),
    ).toEqual(["agent.tool.requested", "a", "agent.tool.denied", "b", "agent.tool.requested"]);
  });

  it("names processors that would share a group", () => {
    expect(findRepeatedNames([{ name: "a" }, { name: "b" }, { name: "a" }])).toEqual(["a"]);
  });
});
