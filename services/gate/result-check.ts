import type { Draft } from "../../schemas/envelope.ts";
import { draft } from "../../schemas/envelope.ts";
import type { GateRequest, JsonObject } from "../../schemas/gate.ts";
import { canonicalDigest } from "../platform/canonical-json.ts";
import { maskJson } from "../platform/mask.ts";
import { toJsonPreview } from "../platform/masked-preview.ts";
import type { Classified } from "./classified.ts";
import type { HookWork } from "./hook-work.ts";
import { toJsonColumn } from "./store.ts";

/** A decision on a call, as stored: secrets masked. */
export interface CallDecision {
  readonly id: string;
  readonly decision: "allow" | "deny" | "require_approval" | "defer" | "modify";
  readonly tool: string;
  readonly planDigest: string | null;
  /** Null: too large to be kept here. */
  readonly input: JsonObject | null;
  /** Of an input that is too large to be kept: `digestOf` its exact form. */
  readonly inputDigest: string | null;
  /** What it was rewritten to. */
  readonly modified: JsonObject | null;
}

/** A call whose result is told. */
export interface ToldResult {
  readonly reported: GateRequest;
  readonly classified: Classified;
  /** The policy lets runtimes pass the tool by themselves. */
  readonly mayPassUnasked: boolean;
}

const previewMaxChars = 512;

/**
 * What a result says against the decisions on its call, as an event; null: nothing. Secrets are compared as masked. The
 * working folder is left out: runtimes tell where they are after the call. Pure.
 */
export function checkResult(
  work: HookWork,
  { reported, classified, mayPassUnasked }: ToldResult,
  decisions: readonly CallDecision[],
): Draft | null {
  const completed = work.observations.find(({ draft: one }) => one.type === "agent.tool.completed");
  // An adapter that sees more than results has named it itself.
  const isNamed = work.observations.some(({ draft: one }) => one.type === "agent.effect.ungated");
  if (completed === undefined || reported.tool_call_id === undefined) return null;
  const about = {
    execution: {
      session_id: reported.session_id,
      turn_id: reported.turn_id ?? null,
      tool_call_id: reported.tool_call_id,
    },
    subject: {
      tool: reported.tool,
      action: classified.action,
      resource_ref: null,
      data_class: classified.dataClass,
    },
    ...(reported.agent_id === undefined ? {} : { agent_id: reported.agent_id }),
  };
  const [last] = decisions.slice(-1);
  if (last === undefined) {
    // What only reads, or is on the policy's list, may pass by a runtime's own profile, whose report comes later.
    if (isNamed || mayPassUnasked || classified.effect === "none" || classified.effect === "read")
      return null;
    const detail = toJsonPreview({ tool: reported.tool, input: reported.input }, previewMaxChars);
    return draft(
      "agent.effect.ungated",
      { effect_class: classified.effect, evidence: "result_without_decision", detail },
      about,
    );
  }
  const volatile = classified.entry?.volatile ?? [];
  const ran = digestOf(reported.tool, toStored(reported.input), volatile);
  const passed = decisions.filter(({ decision }) => decision === "allow" || decision === "modify");
  const { type, redacted_summary: summary } = completed.draft;
  const hasRun =
    type === "agent.tool.completed" && /^(?:succeeded|interrupted|unknown)$/.test(summary.outcome);
  const tell = (against: CallDecision, expected: string, actual: string | null, detail: string): Draft =>
    draft(
      "agent.plan.diverged",
      {
        decision_id: against.id,
        expected_digest: against.planDigest ?? expected,
        actual_digest: actual,
        detail: `${detail}: ${toJsonPreview({ tool: reported.tool, input: reported.input }, previewMaxChars - 100)}`,
      },
      against.planDigest === null ? about : { plan_digest: against.planDigest, ...about },
    );
  const [latest] = passed.slice(-1);
  if (latest === undefined) {
    // Somebody may have agreed in the runtime's own dialog; a refusal nobody lifts.
    const isRefused = decisions.every(({ decision }) => decision === "deny");
    return isRefused && hasRun ? tell(last, "none", ran, "it was refused, and ran") : null;
  }
  // Two adapters of one client may ask about one call in two spellings: of each the last word counts, and one of them ran.
  const words = new Map(passed.map((one) => [toExpected(one.input, one, volatile) ?? one.id, one]));
  for (const one of words.values()) {
    const [expected, actual] = compare(one);
    if (expected === null || actual === null || expected === actual) return null;
  }
  const [expected, actual] = compare(latest);
  return tell(latest, expected ?? "none", actual, "another input ran");

  /** What had to run by a decision, and what ran in the same form. */
  function compare(one: CallDecision): readonly [expected: string | null, actual: string | null] {
    const input = one.modified ?? one.input;
    const told = input === null ? digestOf(reported.tool, reported.input, volatile) : ran;
    return [toExpected(input, one, volatile), told];
  }
}

/** Digest of an input of a decision, as its row has it; null: it does not say. */
const toExpected = (
  input: JsonObject | null,
  { tool, inputDigest }: CallDecision,
  volatile: readonly string[],
): string | null => (input === null ? inputDigest : digestOf(tool, input, volatile));

/** An input as its decision's row would hold it. */
const toStored = (input: JsonObject): JsonObject => JSON.parse(toJsonColumn(maskJson(input))) as JsonObject;

/** What identifies an input: of a call that was decided and of its result; null: it has no canonical form. */
export function digestOf(tool: string, input: JsonObject, volatile: readonly string[]): string | null {
  const kept = Object.entries(input).filter(([field]) => !volatile.includes(field));
  try {
    return canonicalDigest({ tool, arguments: Object.fromEntries(kept) });
  } catch (error) {
    // No canonical form: such a call is denied anyway.
    if (error instanceof TypeError) return null;
    throw error;
  }
}
