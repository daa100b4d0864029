import { describe, expect, it } from "vitest";
import { bindQuestion, parseQuestion } from "./question.ts";

const file = `-- question: How many?
-- param tenant text = '': one tenant
-- param since timestamptz: from when
-- column n: how many
SELECT count(*) AS n FROM analytics.audit_trail
WHERE tenant_id = :'tenant' AND recorded_at > (:'since')::timestamptz AND :'tenant' <> 'x'
`;

describe("a question file", () => {
  const question = parseQuestion("how-many", file);

  it("states its question, its parameters and its columns", () => {
    expect(question).toMatchObject({
      question: "How many?",
      parameters: [
        { name: "tenant", type: "text", fallback: "", text: "one tenant" },
        { name: "since", type: "timestamptz", fallback: undefined, text: "from when" },
      ],
      columns: [{ name: "n", text: "how many" }],
    });
  });

  it("sends values apart from the statement, whatever is in them", () => {
    const { text, values } = bindQuestion(question, { since: "2026-01-01", tenant: "'; DROP TABLE x" });
    expect(text).toContain("tenant_id = $1::text AND recorded_at > ($2)::timestamptz AND $1::text <> 'x'");
    expect(values).toEqual(["'; DROP TABLE x", "2026-01-01"]);
  });

  it("names a value that is missing, and one that it does not take", () => {
    expect(() => bindQuestion(question, {})).toThrow(/needs --param since=/);
    expect(() => bindQuestion(question, { since: "x", person: "y" })).toThrow(
      /takes no `person`; it takes tenant, since/,
    );
  });

  it("that uses a parameter which it does not state is refused", () => {
    expect(() => parseQuestion("bad", file.replace("-- param since timestamptz: from when\n", ""))).toThrow(
      /other parameters than it states/,
    );
  });
});
