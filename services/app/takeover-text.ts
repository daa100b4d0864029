import { z } from "zod";
import { toTable } from "../cli/report.ts";
import type { Screen } from "../cli/screen.ts";
import { style } from "../cli/screen.ts";

const text = z.string().nullable();

/** An item as the desk shows it; what a later version adds is kept for --json. */
export const itemSchema = z.looseObject({
  item_id: z.string(),
  cause: z.string(),
  generation: z.number(),
  title: z.string(),
  state: z.string(),
  opened_at: z.string(),
  last_seen_at: z.string(),
  occurrences: z.number(),
  due_at: z.string(),
  is_overdue: z.boolean(),
  age_ms: z.number(),
  claimed_by: text,
  lease_ends_at: text,
  notes: z.number(),
  closed_at: text,
  closed_by: text,
  outcome: text,
  proposal: text,
  resolution_note: text,
  correlation_id: z.string(),
});
export type Item = z.output<typeof itemSchema>;

export const itemWithEvidenceSchema = itemSchema.extend({
  evidence: z.looseObject({
    causes: z.array(
      z.looseObject({ event_type: z.string(), at: z.string(), role: z.string(), title: z.string() }),
    ),
    who: z.array(z.object({ user_id: text, agent_id: text })),
    decisions: z.array(
      z.looseObject({
        decision_id: z.string(),
        decision: text,
        reason_code: text,
        risk: text,
        policy_revision: text,
        matched_rules: z.array(z.string()),
      }),
    ),
    plans: z.array(z.object({ plan_digest: z.string(), preview: text })),
    approvals: z.array(
      z.looseObject({ approval_id: z.string(), at: z.string(), what: z.string(), by: text }),
    ),
    capability_ids: z.array(z.string()),
    effects: z.array(
      z.looseObject({ effect_id: text, receipt_id: text, at: z.string(), what: z.string(), outcome: text }),
    ),
    payload_refs: z.array(z.string()),
    payload_refs_withheld: z.number().optional(),
    deeds: z.array(
      z.looseObject({
        kind: z.string(),
        at: z.string(),
        person: text,
        assigned_to: text,
        note: text,
        outcome: text,
        proposal: text,
      }),
    ),
    chain: z.array(z.looseObject({ event_id: z.string(), event_type: z.string(), at: z.string() })),
    is_complete: z.boolean(),
  }),
});
export type ItemWithEvidence = z.output<typeof itemWithEvidenceSchema>;

const titleMaxChars = 64;

/** The queue as a table; words, not colours alone, tell what is late. */
export function renderItems(screen: Screen, items: readonly Item[]): string {
  return toTable(
    ["ITEM", "STATE", "DUE", "AGE", "TIMES", "HELD BY", "CAUSE", "WHAT"],
    items.map((one) => [
      one.item_id,
      one.is_overdue ? `${one.state}, late` : one.state,
      toMinute(one.due_at),
      toSpan(one.age_ms),
      String(one.occurrences),
      one.claimed_by ?? one.closed_by ?? "",
      one.cause.replaceAll("_", " "),
      one.title.length > titleMaxChars ? `${one.title.slice(0, titleMaxChars - 1)}…` : one.title,
    ]),
    screen.columns,
  );
}

/** One item, without its evidence. */
export function renderItem(screen: Screen, one: Item): string {
  const late = one.is_overdue ? style(screen, "red", " (late)") : "";
  return [
    style(screen, "bold", one.item_id),
    ...toRows([
      ["what", one.title],
      ["cause", one.cause.replaceAll("_", " ")],
      ["state", one.state],
      [
        "held by",
        one.claimed_by === null ? null : `${one.claimed_by} until ${toMinute(one.lease_ends_at ?? "")}`,
      ],
      ["due", `${toMinute(one.due_at)}${late}`],
      ["opened", `${toMinute(one.opened_at)}, age ${toSpan(one.age_ms)}`],
      [
        "seen",
        one.occurrences === 1
          ? "once"
          : `${String(one.occurrences)} times, the last at ${toMinute(one.last_seen_at)}`,
      ],
      [
        "again",
        one.generation === 1
          ? null
          : `number ${String(one.generation)} of this cause; the ones before are closed`,
      ],
      [
        "closed",
        one.closed_at === null ? null : `${toMinute(one.closed_at)} by ${one.closed_by ?? "unknown"}`,
      ],
      ["outcome", one.outcome?.replaceAll("_", " ") ?? null],
      ["proposal", one.proposal],
      ["note", one.resolution_note],
      ["goal", one.correlation_id],
    ]),
  ].join("\n");
}

/** One item with all that it rests on. */
export function renderEvidence(screen: Screen, one: ItemWithEvidence): string {
  const { evidence } = one;
  const section = (name: string, lines: readonly string[]): string[] =>
    lines.length === 0 ? [] : ["", style(screen, "bold", name), ...lines.map((line) => `  ${line}`)];
  return [
    renderItem(screen, one),
    ...section(
      "why it is here",
      evidence.causes.map((cause) => `${toSecond(cause.at)}  ${cause.title}`),
    ),
    ...section(
      "who",
      evidence.who.map((who) => `${who.user_id ?? "unknown user"}, agent ${who.agent_id ?? "main"}`),
    ),
    ...section(
      "decisions",
      evidence.decisions.flatMap((made) => [
        `${made.decision_id}  ${made.decision ?? "named"} ${made.reason_code ?? ""} under ${made.policy_revision ?? "no policy"}, risk ${made.risk ?? "unknown"}`,
        ...(made.matched_rules.length === 0 ? [] : [`  rules ${made.matched_rules.join(", ")}`]),
      ]),
    ),
    ...section(
      "plans",
      evidence.plans.flatMap((plan) => [
        plan.plan_digest,
        ...(plan.preview === null ? [] : [`  ${plan.preview}`]),
      ]),
    ),
    ...section(
      "approvals",
      evidence.approvals.map(
        (word) =>
          `${toSecond(word.at)}  ${word.approval_id} ${word.what}${word.by === null ? "" : ` by ${word.by}`}`,
      ),
    ),
    ...section("capabilities", evidence.capability_ids),
    ...section(
      "effects",
      evidence.effects.map(
        (effect) =>
          `${toSecond(effect.at)}  ${effect.what} ${[effect.outcome, effect.effect_id, effect.receipt_id].filter((part) => part !== null).join("  ")}`,
      ),
    ),
    ...section("raw payloads, in the vault", evidence.payload_refs),
    ...section(
      "what people did",
      evidence.deeds.map((deed) => [toSecond(deed.at), deed.person ?? "the clock", toDeed(deed)].join("  ")),
    ),
    ...section(
      `events around it${evidence.is_complete ? "" : " (there are more)"}`,
      evidence.chain.map(
        (event) => `${toSecond(event.at)}  ${event.event_type.padEnd(28)} ${event.event_id}`,
      ),
    ),
  ].join("\n");
}

function toDeed(deed: ItemWithEvidence["evidence"]["deeds"][number]): string {
  const to = deed.kind === "reassigned" ? ` to ${deed.assigned_to ?? "somebody"}` : "";
  const words = [deed.outcome?.replaceAll("_", " "), deed.proposal, deed.note].filter((one) => one != null);
  return `${deed.kind}${to}${words.length === 0 ? "" : `: ${words.join("; ")}`}`;
}

function toRows(rows: readonly (readonly [string, string | null])[]): string[] {
  const shown = rows.filter(([, value]) => value !== null && value !== "");
  const width = Math.max(...shown.map(([name]) => name.length));
  return shown.map(([name, value]) => `${name.padEnd(width)}  ${value ?? ""}`);
}

/** An age as people say it. */
export function toSpan(ms: number): string {
  const minutes = Math.max(0, Math.floor(ms / 60_000));
  if (minutes < 60) return `${String(minutes)}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${String(hours)}h ${String(minutes % 60).padStart(2, "0")}m`;
  return `${String(Math.floor(hours / 24))}d ${String(hours % 24)}h`;
}

/** A time to the minute, UTC. */
export function toMinute(iso: string): string {
  return iso === "" ? "" : `${iso.slice(0, 16).replace("T", " ")}Z`;
}

function toSecond(iso: string): string {
  return `${iso.slice(0, 19).replace("T", " ")}Z`;
}
