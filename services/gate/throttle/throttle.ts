import type { EventType } from "../../../schemas/catalog.ts";
import { toAgentScope } from "../holds.ts";
import type { HookWork } from "../hook-work.ts";
import type { ThrottleRule } from "./throttle-rules.ts";
import { omittableTypes } from "./throttle-rules.ts";

/** What becomes of an observing call. */
export type ThrottleWord =
  | { readonly kind: "pass" }
  /** Recorded after this long. */
  | { readonly kind: "delay"; readonly delayMs: number }
  /** Not recorded; that it was left out is. */
  | { readonly kind: "omit" };

/** How often a rule was applied to something in a window. */
export interface Applied {
  readonly rule: ThrottleRule;
  readonly tenantId: string;
  readonly scopeId: string;
  readonly type: EventType;
  /** Begin of the window, UTC milliseconds. */
  readonly windowStartedMs: number;
  readonly events: number;
}

/** Counts observing events of one gate. */
export interface Throttle {
  judge(work: HookWork, nowMs: number): ThrottleWord;
  /** What was applied in windows that are over, or in all of them; each is told once. */
  takeApplied(nowMs: number, all?: boolean): readonly Applied[];
}

interface Window {
  readonly startedMs: number;
  count: number;
  /** What was kept, for the action coalesce. */
  readonly seen: Set<string>;
}

/** Scopes of one rule that are counted at a time; what comes on top passes, as if it were alone. */
const maxWindows = 20_000;
/** Different events of one window that are told apart. */
const maxSeen = 1_000;

/** Pure but for what it counts: the time is handed in. */
export function createThrottle(rules: readonly ThrottleRule[]): Throttle {
  const windows = new Map<string, Window>();
  const applied = new Map<string, { -readonly [K in keyof Applied]: Applied[K] }>();

  function windowOf(rule: ThrottleRule, name: string, nowMs: number): Window {
    const startedMs = Math.floor(nowMs / rule.windowMs) * rule.windowMs;
    const found = windows.get(name);
    if (found?.startedMs === startedMs) return found;
    const fresh = { startedMs, count: 0, seen: new Set<string>() };
    if (found !== undefined || windows.size < maxWindows) windows.set(name, fresh);
    return fresh;
  }
  function note(
    rule: ThrottleRule,
    place: Pick<Applied, "tenantId" | "scopeId" | "type" | "windowStartedMs">,
  ): void {
    const { tenantId, scopeId, type, windowStartedMs } = place;
    const name = JSON.stringify([rule.id, tenantId, scopeId, type, windowStartedMs]);
    const found = applied.get(name);
    if (found === undefined) applied.set(name, { rule, ...place, events: 1 });
    else found.events += 1;
  }
  function apply(rule: ThrottleRule, work: HookWork, type: EventType, nowMs: number): ThrottleWord {
    const scopeId = toScopeId(rule, work, type);
    if (scopeId === null) return { kind: "pass" };
    const name = JSON.stringify([rule.id, work.tenantId, scopeId]);
    const window = windowOf(rule, name, nowMs);
    window.count += 1;
    const { action } = rule;
    const what = action.kind === "coalesce" ? toContent(work) : "";
    const isRepeated = window.seen.has(what);
    if (action.kind === "coalesce" && window.seen.size < maxSeen) window.seen.add(what);
    if (window.count <= rule.limit) return { kind: "pass" };
    const place = { tenantId: work.tenantId, scopeId, type, windowStartedMs: window.startedMs };
    switch (action.kind) {
      case "delay":
        note(rule, place);
        return { kind: "delay", delayMs: action.delayMs };
      case "sample":
        if ((window.count - rule.limit) % action.oneIn === 0) return { kind: "pass" };
        break;
      case "coalesce":
        if (!isRepeated) return { kind: "pass" };
        break;
      case "drop":
        break;
    }
    note(rule, place);
    return { kind: "omit" };
  }

  return {
    judge(work, nowMs) {
      const types = [...new Set(work.observations.map((one) => one.draft.type))];
      const [type] = types;
      if (work.request !== null || type === undefined) return { kind: "pass" };
      // One payload is recorded whole or not at all; and what labels a session is never left out.
      const mayOmit = work.reported === undefined && types.every((one) => omittableTypes.has(one));
      let delayMs = 0;
      for (const rule of rules) {
        if (rule.action.kind !== "delay" && !mayOmit) continue;
        if (rule.types.length > 0 && !types.every((one) => rule.types.includes(one))) continue;
        const word = apply(rule, work, type, nowMs);
        if (word.kind === "omit") return word;
        if (word.kind === "delay") delayMs = Math.max(delayMs, word.delayMs);
      }
      return delayMs === 0 ? { kind: "pass" } : { kind: "delay", delayMs };
    },
    takeApplied(nowMs, all = false) {
      for (const [name, { startedMs }] of windows) {
        const [id] = JSON.parse(name) as [string];
        const windowMs = rules.find((rule) => rule.id === id)?.windowMs ?? 0;
        if (startedMs + windowMs <= nowMs) windows.delete(name);
      }
      const due = [...applied].filter(([, one]) => all || one.windowStartedMs + one.rule.windowMs <= nowMs);
      for (const [name] of due) applied.delete(name);
      return due.map(([, one]) => one);
    },
  };
}

function toScopeId(rule: ThrottleRule, work: HookWork, type: EventType): string | null {
  switch (rule.scope) {
    case "tenant":
      return work.tenantId;
    case "agent":
      return work.call.sessionId === undefined
        ? null
        : toAgentScope(work.runtime.kind, work.call.sessionId, work.call.agentId ?? null);
    case "tool":
      return work.observations[0]?.draft.subject?.tool ?? work.reported?.tool ?? null;
    case "type":
      return type;
  }
}

/** Two payloads with the same events of the same session and turn say the same. */
function toContent({ call, observations }: HookWork): string {
  return JSON.stringify(
    [
      call.sessionId,
      call.turnId,
      call.agentId,
      observations.map(({ draft }) => [draft.type, draft.redacted_summary]),
    ],
    (_key, value: unknown) => (typeof value === "bigint" ? value.toString() : value),
  );
}
