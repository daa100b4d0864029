import type { z } from "zod";
import type { Anchor, AnchorScope, Observation, Translation } from "../../schemas/adapter.ts";
import type { EventType } from "../../schemas/catalog.ts";
import type { Draft } from "../../schemas/envelope.ts";
import { draft } from "../../schemas/envelope.ts";
import type { GateRequest } from "../../schemas/gate.ts";
import type { Runtime, Subject, Summaries } from "../../schemas/generated/types.ts";
import type { Place } from "./adapter-kit.ts";
import { compact, toCauses, toUnrecognized } from "./adapter-kit.ts";
import type { FieldRules, ReadFields, UnreadableField } from "./payload-fields.ts";
import { identifierField, isJsonObject, readFields, toPointer } from "./payload-fields.ts";

/** Longest permission mode that the gate takes. */
const permissionModeMaxChars = 64;

/** Where and under what runtime a payload happened. */
export interface Scene {
  readonly runtime: Runtime;
  readonly place: Place;
}

/** What one payload means. */
export interface Meaning {
  readonly observations: readonly Observation[];
  /** Set for a payload in front of a side effect. */
  readonly request?: GateRequest;
  /** The call whose result a payload tells. */
  readonly reported?: GateRequest;
  /** Parts of containers that were left, or never seen before. */
  readonly nested?: readonly {
    readonly dropped: readonly string[];
    readonly unknownFields: readonly string[];
  }[];
}

/** One event of a runtime. */
export interface HookRule {
  /** The moment in the fabric's words. */
  readonly phase: string;
  /** True when a side effect waits for the answer. */
  readonly gating: boolean;
  understand(payload: Readonly<Record<string, unknown>>, scene: Scene): UnreadableField | UnderstoodHook;
}
/** A meaning with the account of its fields. */
export interface UnderstoodHook {
  readonly ok: true;
  readonly observations: readonly Observation[];
  readonly request: GateRequest | undefined;
  readonly reported: GateRequest | undefined;
  readonly dropped: readonly string[];
  readonly unknownFields: readonly string[];
}

/** Makes a rule of an event's fields and what they mean. */
export function hookRule<B extends z.ZodRawShape, M extends z.ZodRawShape>(
  phase: string,
  gating: boolean,
  fields: FieldRules<B, M>,
  toMeaning: (read: ReadFields<B, M>, scene: Scene) => Meaning | UnreadableField,
): HookRule {
  return {
    phase,
    gating,
    understand(payload, scene) {
      const read = readFields(payload, fields);
      if (!read.ok) return read;
      const meaning = toMeaning(read, scene);
      if ("problem" in meaning) return meaning;
      const nested = meaning.nested ?? [];
      return {
        ok: true,
        observations: meaning.observations,
        request: meaning.request,
        reported: meaning.reported,
        dropped: [...read.dropped, ...nested.flatMap((one) => one.dropped)],
        unknownFields: [...read.unknownFields, ...nested.flatMap((one) => one.unknownFields)],
      };
    },
  };
}

/** The meaning of a payload that asks nothing and tells one thing. */
export const observe = (observation: Observation, nested: Meaning["nested"] = []): Meaning => ({
  observations: [observation],
  nested,
});

/** An event of type `T` at this place. Its causes are the places around it, less those that it cannot come from. */
export function toObservation<T extends EventType>(
  type: T,
  summary: Summaries[T],
  scene: Scene,
  rest: {
    readonly notFrom?: readonly AnchorScope[];
    readonly anchor?: Anchor | undefined;
    readonly tool?: string;
  } = {},
): Observation {
  const { sessionId, turnId, toolCallId, agentId } = scene.place;
  const subject: Subject | undefined =
    rest.tool === undefined
      ? undefined
      : { tool: rest.tool, action: null, resource_ref: null, data_class: "unknown" };
  return compact({
    draft: draft(
      type,
      summary,
      compact({
        runtime: scene.runtime,
        agent_id: agentId,
        execution: compact({ session_id: sessionId, turn_id: turnId, tool_call_id: toolCallId }),
        subject,
      }) as unknown as Omit<Draft<T>, "type" | "redacted_summary">,
    ),
    causes: toCauses(scene.place, rest.notFrom),
    anchor: rest.anchor,
  }) as Observation;
}

/** A runtime's hooks: how its payloads name things, and what each of its events means. */
export interface HookTable {
  readonly runtime: string;
  readonly version: string;
  readonly eventNameField: string;
  readonly permissionModeField: string;
  readonly idFields: { readonly [K in keyof Place]-?: string };
  readonly rules: ReadonlyMap<string, HookRule>;
  /** Another adapter may tell of the same calls: of two results of one call that ran the same input the first counts. */
  readonly endsOnce?: true;
}

const ownValue = (payload: Readonly<Record<string, unknown>>, key: string): unknown =>
  Object.hasOwn(payload, key) ? payload[key] : undefined;

const toScene = (
  table: HookTable,
  payload: Readonly<Record<string, unknown>>,
): { place: Partial<Place>; runtime: Runtime } => {
  const id = (key: string): string | undefined => identifierField.safeParse(ownValue(payload, key)).data;
  const mode = ownValue(payload, table.permissionModeField);
  return {
    place: compact({
      sessionId: id(table.idFields.sessionId),
      turnId: id(table.idFields.turnId),
      toolCallId: id(table.idFields.toolCallId),
      agentId: id(table.idFields.agentId),
    }),
    runtime: {
      kind: table.runtime,
      adapter_version: table.version,
      runtime_version: null,
      permission_mode: typeof mode === "string" && mode.length <= permissionModeMaxChars ? mode : null,
      sandbox: null,
    },
  };
};

/** Translates any JSON value by a runtime's table. Never throws. */
export function translateByTable(table: HookTable, payload: unknown, bodyBytes: number): Translation {
  const known = isJsonObject(payload) ? payload : {};
  const { place, runtime } = toScene(table, known);
  const name = ownValue(known, table.eventNameField);
  const eventName = typeof name === "string" ? name : null;
  const rule = eventName === null ? undefined : table.rules.get(eventName);
  const toNo = (problem: UnreadableField["problem"], field: string | null): Translation =>
    toUnrecognized({
      ...{ runtime, place, eventName, phase: rule?.phase, problem, field, bodyBytes },
      // What an unknown event would do is not known: its caller is told no.
      gating: rule?.gating ?? true,
    });

  if (!isJsonObject(payload)) return toNo("not_an_object", null);
  if (name === undefined) return toNo("missing_field", toPointer(table.eventNameField));
  if (eventName === null) return toNo("wrong_type", toPointer(table.eventNameField));
  if (rule === undefined) return toNo("unknown_event", toPointer(table.eventNameField));
  const understood = rule.understand(payload, { runtime, place: place as Place });
  if (!understood.ok) return toNo(understood.problem, understood.field);
  const { sessionId, turnId, toolCallId, agentId } = place;
  const base = {
    call: { ...(compact({ sessionId, turnId, toolCallId, agentId }) as Place), phase: rule.phase } as Extract<
      Translation,
      { kind: "observed" }
    >["call"],
    runtime,
    observations: understood.observations,
    dropped: understood.dropped,
    unknownFields: understood.unknownFields,
  };
  return understood.request === undefined
    ? understood.reported === undefined
      ? { kind: "observed", ...base }
      : {
          kind: "observed",
          reported: understood.reported,
          ...(table.endsOnce === true ? { endsOnce: true } : {}),
          ...base,
        }
    : { kind: "gated", ...base, request: understood.request };
}
