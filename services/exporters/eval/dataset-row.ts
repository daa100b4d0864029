import type { EpisodeRow } from "../../../processors/eval/queries.ts";
import { maskJson } from "../../platform/mask.ts";
import { toStorableText } from "../../platform/masked-preview.ts";
import type { Split } from "./splits.ts";

/** A column of the dataset: its type in Parquet, and what it is. */
interface Column {
  readonly name: string;
  readonly type: "STRING" | "INT32" | "INT64" | "TIMESTAMP" | "JSON";
  readonly nullable: boolean;
  readonly doc: string;
}

const column = (name: string, type: Column["type"], doc: string, nullable = false): Column => ({
  name,
  type,
  nullable,
  doc,
});

/** Raised when a column changes its meaning; part of what names a version. */
export const datasetSchemaVersion = "1.0";

/** The columns in their order: the same in JSON lines and in Parquet. */
export const datasetColumns = [
  column("episode_id", "STRING", "epi_ and a UUIDv8 over tenant and correlation"),
  column("tenant_id", "STRING", "tenant that the episode belongs to"),
  column("split", "STRING", "train, validation or test; related episodes are in one"),
  column("leakage_group", "STRING", "first episode of all that are related to this one"),
  column("correlation_id", "STRING", "one goal of a user, across child agents"),
  column("session_id", "STRING", "session that the episode began in", true),
  column("environment", "STRING", "deployment environment of the agent"),
  column("runtime_kind", "STRING", "adapter of the runtime"),
  column("user_id", "STRING", "person who asked", true),
  column("model", "STRING", "model that the session began with", true),
  column("working_directory", "STRING", "folder that the session began in", true),
  column("goal", "STRING", "masked beginning of the first prompt", true),
  column("started_at", "TIMESTAMP", "first event, UTC"),
  column("last_event_at", "TIMESTAMP", "last event, UTC"),
  column("state", "STRING", "completed, failed, interrupted or open"),
  column("label", "STRING", "what people say, when all of them say the same", true),
  column("labels", "JSON", "each author's last word: author, label, score, note, labelled_at"),
  column(
    "steps",
    "JSON",
    "calls in order: tool, action, resource, input, decision, reason, outcome, recovered_by",
  ),
  column("calls", "INT32", "calls in steps"),
  column("allowed", "INT32", "calls that the gate let pass, rewritten ones included"),
  column("denied", "INT32", "calls that the gate refused"),
  column("held", "INT32", "calls that wait for a person or a fact"),
  column("ungated", "INT32", "calls that ran without a decision"),
  column("succeeded", "INT32", "calls that succeeded"),
  column("failed", "INT32", "calls that failed"),
  column("stumbles", "INT32", "calls that were denied, refused or failed"),
  column("recoveries", "INT32", "stumbles that a later call made up for"),
  column("call_facts_beyond", "INT64", "events about calls past those that steps is made from"),
  column("events", "INT64", "events of the episode"),
  column("prompts", "INT64", "prompts handed to the agent"),
  column("subagents", "INT64", "child agents that began"),
  column("model_calls", "INT64", "model calls that ended"),
  column("input_tokens", "INT64", "tokens read, cached ones included"),
  column("cached_input_tokens", "INT64", "part of input_tokens"),
  column("output_tokens", "INT64", "tokens written"),
  column("cost_micros", "INT64", "millionths of the currency that runtimes report in"),
] as const satisfies readonly Column[];

/** A value as JSON lines carry it. */
export type DatasetRow = Readonly<Record<(typeof datasetColumns)[number]["name"], unknown>>;

/** An episode as a row of the dataset: masked once more, whatever the ledger holds. */
export function toDatasetRow(episode: EpisodeRow, split: Split, leakageGroup: string): DatasetRow {
  const labels = new Set(episode.labels.map((one) => one.label));
  const [label] = labels;
  const row: DatasetRow = {
    episode_id: episode.episode_id,
    tenant_id: episode.tenant_id,
    split,
    leakage_group: leakageGroup,
    correlation_id: episode.correlation_id,
    session_id: episode.session_id,
    environment: episode.environment,
    runtime_kind: episode.runtime_kind,
    user_id: episode.user_id,
    model: episode.model,
    working_directory: episode.working_directory,
    goal: episode.goal,
    started_at: episode.started_at.toISOString(),
    last_event_at: episode.last_event_at.toISOString(),
    state: episode.state,
    label: labels.size === 1 ? label : null,
    labels: episode.labels,
    steps: episode.steps,
    calls: episode.calls,
    allowed: episode.allowed,
    denied: episode.denied,
    held: episode.held,
    ungated: episode.ungated,
    succeeded: episode.succeeded,
    failed: episode.failed,
    stumbles: episode.stumbles,
    recoveries: episode.recoveries,
    call_facts_beyond: toJsonNumber(episode.call_facts_beyond),
    events: toJsonNumber(episode.events),
    prompts: toJsonNumber(episode.prompts),
    subagents: toJsonNumber(episode.subagents),
    model_calls: toJsonNumber(episode.model_calls),
    input_tokens: toJsonNumber(episode.input_tokens),
    cached_input_tokens: toJsonNumber(episode.cached_input_tokens),
    output_tokens: toJsonNumber(episode.output_tokens),
    cost_micros: toJsonNumber(episode.cost_micros),
  };
  return storable(maskJson(row)) as DatasetRow;
}

/** Readers of JSON take numbers as doubles: past 2^53 the bound is closer than any digit after it. */
function toJsonNumber(amount: bigint): number {
  return Number(amount > BigInt(Number.MAX_SAFE_INTEGER) ? BigInt(Number.MAX_SAFE_INTEGER) : amount);
}

function storable(value: unknown): unknown {
  if (typeof value === "string") return toStorableText(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(storable);
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, storable(one)]));
}
