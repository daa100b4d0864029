import { describe, expect, it } from "vitest";
import type { Envelope } from "../../schemas/envelope.ts";
import { draft } from "../../schemas/envelope.ts";
import { eventOf, given } from "../kit/given.ts";
import { episodeIdOf } from "./episode-id.ts";
import { evaluation } from "./eval.ts";
import type { Change } from "./store.ts";

const prompt = (preview: string, context = {}) =>
  eventOf(
    draft(
      "agent.prompt.submitted",
      { prompt_bytes: 3, preview, command_name: null },
      { execution: { session_id: "s1", task_id: "task_1" } },
    ),
    { userId: "dana", ...context },
  );
const label = (episodeId: string) =>
  eventOf(
    draft("agent.episode.labelled", {
      episode_id: episodeId,
      label: "good",
      score: 90,
      note: "fine",
      author: "ann",
      labelled_at: 1_767_225_600_000,
    }),
  );
const decided = (decision: "deny" | "require_approval" | "unknown") =>
  eventOf(
    draft(
      "agent.tool.denied",
      { decision_id: "dec_1", effect_class: "execute", message: "no" },
      {
        execution: { session_id: "s1", tool_call_id: "c1" },
        policy: { revision: "r", risk: "low", decision, reason_code: "WHY", matched_rules: [] },
      },
    ),
  );
const model = (tokens: bigint | null) =>
  eventOf(
    draft("agent.model.completed", {
      model: "m",
      outcome: "unknown",
      input_tokens: tokens,
      cached_input_tokens: null,
      cache_write_tokens: null,
      output_tokens: tokens,
      reasoning_tokens: null,
      duration_ms: null,
      cost_micros: null,
      error_kind: null,
      model_call_id: null,
    }),
  );
const project = async (event: Envelope): Promise<Change> => {
  const { changes } = await given(evaluation).when(event);
  return changes[0] as Change;
};

/** Tables that statements write, in their order. */
const written = (statements: readonly { readonly text: string }[]): readonly string[] =>
  statements.flatMap(({ text }) => /INSERT INTO (\w+)/.exec(text)?.[1] ?? []);

describe("episode id", () => {
  it("is a UUIDv8 that another tenant, or parts put together otherwise, never have", () => {
    expect(episodeIdOf("acme", "cor_1")).toMatch(
      /^epi_[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    );
    const ids = [episodeIdOf("acme", "cor_1"), episodeIdOf("globex", "cor_1"), episodeIdOf("acmecor_", "1")];
    expect(new Set(ids).size).toBe(3);
    expect(episodeIdOf("acme", "cor_1")).toBe(ids[0]);
  });
});

describe("eval", () => {
  it("writes an event as a fact with its links, and judges the episodes that were touched", async () => {
    const { changes, statements, emissions } = await given(evaluation, ({ text }) =>
      text.includes("INSERT INTO totals") ? [{ episode_id: "epi_1" }] : [],
    ).when(prompt("fix it"));
    expect(changes).toMatchObject([
      {
        kind: "fact",
        row: { kind: "prompt", preview: "fix it", episode_id: episodeIdOf("acme", "cor_1"), call_key: null },
        links: [{ link: "session\u001Ftest\u001Fs1" }, { link: "task\u001Ftask_1" }],
      },
    ]);
    expect(written(statements)).toEqual(["facts", "links", "episodes"]);
    expect(emissions).toEqual([]);
  });

  it("judges nothing anew when all that came was there already", async () => {
    const { statements } = await given(evaluation).when(prompt("fix it"));
    expect(written(statements)).toEqual(["facts"]);
  });

  it("keeps a label whatever episode it names", async () => {
    expect(await project(label("epi_nobody"))).toMatchObject({
      kind: "label",
      row: { episode_id: "epi_nobody", author: "ann", label: "good", score: 90 },
    });
  });

  it("tells a refusal that asks for a person from a denial, and takes the type's word where the policy has none", async () => {
    expect(await project(decided("require_approval"))).toMatchObject({
      row: { decision: "require_approval" },
    });
    expect(await project(decided("deny"))).toMatchObject({ row: { decision: "deny", reason_code: "WHY" } });
    expect(await project(decided("unknown"))).toMatchObject({ row: { decision: "deny" } });
  });

  it("bounds amounts that cannot be, and knows an unknown outcome for none", async () => {
    expect(await project(model(-5n))).toMatchObject({ row: { input_tokens: "0", outcome: null } });
    expect(await project(model(2n ** 52n))).toMatchObject({ row: { output_tokens: "1000000000" } });
    expect(await project(model(null))).toMatchObject({ row: { input_tokens: null } });
  });

  it("bounds texts, and carries no NUL", async () => {
    const change = await project(prompt(`\u0000${"😀".repeat(300)}`));
    const preview = change.kind === "fact" ? (change.row.preview ?? "") : "";
    expect(preview.length).toBeLessThanOrEqual(256);
    expect(preview.startsWith("\uFFFD😀")).toBe(true);
    expect(preview).not.toMatch(/[\uD800-\uDBFF](?![\uDC00-\uDFFF])/);
  });
});
