import { describe, expect, it } from "vitest";
import { eventTypes } from "../../schemas/catalog.ts";
import { toProcessorFiles } from "./processor-files.ts";
import { toSampleSummary } from "./sample-summary.ts";

const list = `import { audit } from "../../processors/audit/audit.ts";
import { takeover } from "../../processors/takeover/takeover.ts";

/** The processors that ship; a new one is added here. */
export const processors: readonly Processor[] = [audit, takeover];
`;
const make = (name: string, topics: readonly string[] = ["agent.tool.denied"]) =>
  toProcessorFiles({ name, topics, taken: ["audit", "gate"], list });

describe("a new processor", () => {
  it("is a file, its test and its migration, and stands in the list", () => {
    const { files, list: added } = make("tool-refusals");
    expect([...files.keys()]).toEqual([
      "processors/tool-refusals/tool-refusals.ts",
      "processors/tool-refusals/tool-refusals.test.ts",
      "deploy/migrations/tool-refusals/0001_tool_refusals.sql",
    ]);
    expect(added).toContain(
      'import { toolRefusals } from "../../processors/tool-refusals/tool-refusals.ts";\n\n/**',
    );
    expect(added).toContain("= [audit, takeover, toolRefusals];");
  });

  it("is refused with a name that cannot be one, or that is taken", () => {
    for (const name of ["Refusals", "9lives", "a_b", "a--b", "a-", "../x", "class", "pg-x", "x".repeat(60)])
      expect(() => make(name), name).toThrow(/no name for a processor/);
    expect(() => make("gate")).toThrow(/is taken/);
  });

  it("is refused with a topic that does not exist, naming the nearest ones", () => {
    expect(() => make("refusals", ["agent.tool.refused"])).toThrow(/near it are .*agent\.tool\./);
    expect(() => make("refusals", [])).toThrow(/at least one/);
  });

  it("has a sample of every event type for its test", () => {
    for (const type of eventTypes)
      expect([type, toSampleSummary(type)]).toEqual([type, expect.stringMatching(/^\{.*\}$/)]);
  });
});
