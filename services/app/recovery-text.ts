import { z } from "zod";
import { toTable } from "../cli/report.ts";
import type { Screen } from "../cli/screen.ts";
import { style } from "../cli/screen.ts";
import { toMinute } from "./takeover-text.ts";

const text = z.string().nullable();

/** Letters of one cause, as the desk shows them; what a later version adds is kept for --json. */
export const groupSchema = z.looseObject({
  kind: z.string(),
  code: z.string(),
  processor: z.string(),
  topic: z.string(),
  letters: z.number(),
  waiting: z.number(),
  tenants: z.number(),
  attempts_max: z.number(),
  first_buried_at: z.string(),
  last_buried_at: z.string(),
  example: z.string(),
});
export const letterSchema = z.looseObject({
  letter_id: z.string(),
  kind: z.string(),
  state: z.string(),
  fault_kind: z.string(),
  code: z.string(),
  detail: z.string(),
  processor: z.string(),
  processor_version: z.string(),
  attempts: z.number(),
  redrives: z.number(),
  tenant_id: z.string(),
  topic: z.string(),
  partition: z.number(),
  offset: z.number(),
  event_id: text,
  payload_ref: z.string(),
  payload_digest: z.string(),
  accountable: z.string(),
  redeliver_role: z.string(),
  buried_at: z.string(),
  failed_again_at: text,
  redriven_at: text,
  redriven_by: text,
  archived_at: text,
  archived_by: text,
  archive_reason: text,
});
export const plannedSchema = z.looseObject({
  groups: z.array(
    z.looseObject({
      processor: z.string(),
      topic: z.string(),
      code: z.string(),
      letters: z.number(),
      ready: z.number(),
      beyond_limit: z.number(),
      tenant_not_served: z.number(),
      role_missing: z.number(),
    }),
  ),
});
export const redriveSchema = z.looseObject({
  redrive_id: z.string(),
  processor: z.string(),
  requested_by: z.string(),
  requested_at: z.string(),
  letters: z.number(),
  per_second: z.number(),
  processed: z.number(),
  duplicates: z.number(),
  failed: z.number(),
  skipped: z.number(),
  waits_for: text,
  stopped_at: text,
  stopped_by: text,
  stop_reason: text,
  finished_at: text,
});
export const gapSchema = z.looseObject({
  consumer: z.string(),
  topic: z.string(),
  partition: z.number(),
  cause: z.string(),
  stopped_at: z.string(),
  stopped_offset: z.number(),
  log_start: z.number().nullable(),
  log_end: z.number().nullable(),
});
export const heldSchema = z.looseObject({
  consumer: z.string(),
  held_for: z.string(),
  held_since: z.string(),
  events: z.number(),
  bytes: z.number(),
  types: z.array(z.string()),
});
export const parkedSchema = z.looseObject({
  event_id: z.string(),
  type: z.string(),
  tenant_id: z.string(),
  bytes: z.number(),
  code: z.string(),
  reason: z.string(),
  parked_at: z.string(),
  archived_at: text,
});

type Group = z.output<typeof groupSchema>;
type Letter = z.output<typeof letterSchema>;
type Planned = z.output<typeof plannedSchema>["groups"][number];
export type Redrive = z.output<typeof redriveSchema>;
type Gap = z.output<typeof gapSchema>;
type Held = z.output<typeof heldSchema>;
type Parked = z.output<typeof parkedSchema>;

/** Letters by cause. */
export function renderGroups(screen: Screen, groups: readonly Group[]): string {
  if (groups.length === 0) return "no letter";
  return toTable(
    ["PROCESSOR", "CAUSE", "TOPIC", "LETTERS", "WAITING", "TENANTS", "TRIES", "FIRST", "LAST", "EXAMPLE"],
    groups.map((one) => [
      one.processor,
      one.code,
      one.topic,
      String(one.letters),
      String(one.waiting),
      String(one.tenants),
      `up to ${String(one.attempts_max)}`,
      toMinute(one.first_buried_at),
      toMinute(one.last_buried_at),
      toLine(one.example),
    ]),
    screen.columns,
  );
}

/** Single letters. */
export function renderLetters(screen: Screen, letters: readonly Letter[]): string {
  if (letters.length === 0) return "no letter";
  return toTable(
    ["LETTER", "STATE", "PROCESSOR", "CAUSE", "FROM", "TENANT", "TRIES", "BURIED", "WHAT"],
    letters.map((one) => [
      one.letter_id,
      one.state,
      one.processor,
      one.code,
      `${one.topic}/${String(one.partition)}@${String(one.offset)}`,
      one.tenant_id,
      String(one.attempts),
      toMinute(one.buried_at),
      toLine(one.detail),
    ]),
    screen.columns,
  );
}

/** One letter with all that is known of it. */
export function renderLetter(screen: Screen, one: Letter): string {
  const rows: readonly (readonly [string, string | null])[] = [
    ["what", toLine(one.detail)],
    ["cause", `${one.code} (${one.fault_kind})`],
    ["kind", one.kind],
    ["state", one.state],
    ["consumer", `${one.processor} ${one.processor_version}`],
    ["from", `${one.topic}/${String(one.partition)} at ${String(one.offset)}`],
    ["event", one.event_id],
    ["tenant", one.tenant_id],
    ["tries", `${String(one.attempts)}, ${String(one.redrives)} of them redrives`],
    ["buried", toMinute(one.buried_at)],
    ["came back", one.failed_again_at === null ? null : toMinute(one.failed_again_at)],
    [
      "redriven",
      one.redriven_at === null ? null : `${toMinute(one.redriven_at)} by ${one.redriven_by ?? "unknown"}`,
    ],
    [
      "put away",
      one.archived_at === null
        ? null
        : `${toMinute(one.archived_at)} by ${one.archived_by ?? "unknown"}: ${one.archive_reason ?? ""}`,
    ],
    ["accountable", one.accountable],
    ["may redrive", one.redeliver_role],
    ["bytes", `${one.payload_ref}, in the vault`],
    ["digest", one.payload_digest],
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  return [
    style(screen, "bold", one.letter_id),
    ...rows.flatMap(([name, value]) => (value === null ? [] : [`${name.padEnd(width)}  ${value}`])),
  ].join("\n");
}

/** What a redrive would send, and why the rest stays. */
export function renderPlan(screen: Screen, groups: readonly Planned[]): string {
  if (groups.length === 0) return "no open letter";
  const table = toTable(
    ["PROCESSOR", "CAUSE", "TOPIC", "LETTERS", "READY", "WHY THE OTHERS STAY"],
    groups.map((one) => [
      one.processor,
      one.code,
      one.topic,
      String(one.letters),
      String(one.ready),
      [
        one.beyond_limit > 0 ? `${String(one.beyond_limit)} were redriven too often` : "",
        one.tenant_not_served > 0 ? `${String(one.tenant_not_served)} of tenants frozen or not served` : "",
        one.role_missing > 0 ? `${String(one.role_missing)} need another role` : "",
      ]
        .filter((part) => part !== "")
        .join("; "),
    ]),
    screen.columns,
  );
  const ready = groups.reduce((sum, one) => sum + one.ready, 0);
  return `${table}\n\n${ready === 0 ? "nothing can be sent" : `${String(ready)} would be sent`}`;
}

/** How far redrives are. */
export function renderRedrives(screen: Screen, redrives: readonly Redrive[]): string {
  if (redrives.length === 0) return "no redrive";
  return toTable(
    ["REDRIVE", "PROCESSOR", "LETTERS", "THROUGH", "DUPLICATE", "CAME BACK", "SKIPPED", "BY", "STATE"],
    redrives.map((one) => [
      one.redrive_id,
      one.processor,
      String(one.letters),
      String(one.processed),
      String(one.duplicates),
      String(one.failed),
      String(one.skipped),
      one.requested_by,
      toState(one),
    ]),
    screen.columns,
  );
}

function toState(one: Redrive): string {
  if (one.stopped_at !== null) {
    const word = one.finished_at === null ? "stopped" : "given up";
    return `${word} ${toMinute(one.stopped_at)} by ${one.stopped_by ?? "unknown"}: ${one.stop_reason ?? ""}`;
  }
  if (one.finished_at !== null) return `finished ${toMinute(one.finished_at)}`;
  return one.waits_for === null ? `at most ${String(one.per_second)}/s` : `waits: ${one.waits_for}`;
}

/** Partitions that stand still. */
export function renderGaps(screen: Screen, gaps: readonly Gap[]): string {
  if (gaps.length === 0) return "nothing stands still";
  return toTable(
    ["CONSUMER", "PARTITION", "SINCE", "STANDS AT", "LOG HOLDS", "CAUSE"],
    gaps.map((one) => [
      one.consumer,
      `${one.topic}/${String(one.partition)}`,
      toMinute(one.stopped_at),
      String(one.stopped_offset),
      one.log_start === null || one.log_end === null
        ? "no topic"
        : `${String(one.log_start)} to ${String(one.log_end)}`,
      one.cause.replaceAll("_", " "),
    ]),
    screen.columns,
  );
}

/** Events that are held back. */
export function renderHeld(screen: Screen, held: readonly Held[]): string {
  if (held.length === 0) return "nothing is held back";
  return toTable(
    ["PROCESSOR", "EVENTS", "BYTES", "SINCE", "TYPES", "WHY"],
    held.map((one) => [
      one.consumer,
      String(one.events),
      String(one.bytes),
      toMinute(one.held_since),
      one.types.join(", "),
      one.held_for,
    ]),
    screen.columns,
  );
}

/** Events that the broker refused. */
export function renderParked(screen: Screen, parked: readonly Parked[]): string {
  if (parked.length === 0) return "nothing is parked";
  return toTable(
    ["EVENT", "TYPE", "TENANT", "BYTES", "PARKED", "CAUSE", "WHAT THE BROKER SAID"],
    parked.map((one) => [
      one.event_id,
      one.type,
      one.tenant_id,
      String(one.bytes),
      `${toMinute(one.parked_at)}${one.archived_at === null ? "" : ", put away"}`,
      one.code,
      toLine(one.reason),
    ]),
    screen.columns,
  );
}

const lineMaxChars = 120;

function toLine(text: string): string {
  const line = text.replaceAll(/\s+/g, " ");
  return line.length > lineMaxChars ? `${line.slice(0, lineMaxChars - 1)}…` : line;
}
