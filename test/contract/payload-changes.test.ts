import { describe, expect, it } from "vitest";
import { comparePayloads, eventNameOf, renderChanges } from "../runtimes/payload-changes.ts";

const named = (payload: Readonly<Record<string, unknown>>) => ({
  event: eventNameOf(payload) ?? "",
  payload,
});

describe("a client's new payloads beside the corpus", () => {
  const corpus = [
    named({ hook: "before", id: "1", context: { folder: "/w" }, tool_input: { command: "ls" } }),
    named({ hook: "before", id: "2", context: { folder: "/w", turn: "t" }, tool_input: { path: "x" } }),
    named({ hook: "after", outcome: "ok" }),
  ];

  it("finds new fields, fields that are gone, other types and new events", () => {
    const found = comparePayloads(corpus, [
      named({
        hook: "before",
        id: 3,
        place: { ours: 1 },
        context: { turn: "t", trace: { id: "x" } },
        tool_input: { url: "y" },
      }),
      named({ hook: "before.stream", id: "4" }),
    ]);
    expect(found).toEqual({
      newEvents: ["before.stream"],
      unseenEvents: ["after"],
      changes: [
        {
          event: "before",
          newFields: ["/context/trace"],
          missingFields: ["/context/folder"],
          changedTypes: ["/id: string, now number"],
        },
      ],
    });
    expect(renderChanges(found).join("\n")).toContain("new events: before.stream");
  });

  it("takes what only some payloads had for optional, and a tool's own input for data", () => {
    const found = comparePayloads(corpus, [
      named({ hook: "before", id: "3", context: { folder: "/w" }, tool_input: { anything: [1] } }),
      named({ hook: "after", outcome: "ok" }),
    ]);
    expect(found).toEqual({ newEvents: [], unseenEvents: [], changes: [] });
    expect(renderChanges(found)).toEqual(["nothing changed in what was seen"]);
  });
});
