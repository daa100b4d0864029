import type { Draft } from "./envelope.ts";
import type { GateAnswer, GateRequest } from "./gate.ts";
import type { Runtime } from "./generated/types.ts";

/** What an event hangs on; the gate knows the event_id of each. */
export type AnchorScope = "session" | "turn" | "call" | "subagent";
/** One such thing: `id` is unique within its session and scope. */
export interface Anchor {
  readonly scope: AnchorScope;
  readonly id: string;
}

/** A draft with its place in the causal chain. */
export interface Observation {
  readonly draft: Draft;
  /** The direct trigger; the gate looks its event_id up. The first one that is known counts. */
  readonly causes: readonly Anchor[];
  /** This event is the one that later events name as their cause. */
  readonly anchor?: Anchor;
}

/** Which call of which session a payload is about. Ids are the runtime's own. */
export interface CallIdentity {
  readonly sessionId: string;
  readonly turnId?: string;
  readonly toolCallId?: string;
  readonly agentId?: string;
  /** The runtime's moment in the fabric's words, such as `before_tool`; part of the dedupe key. */
  readonly phase: string;
}

interface TranslationBase {
  readonly call: CallIdentity;
  readonly runtime: Runtime;
  readonly observations: readonly Observation[];
  /** Known fields that carry nothing for an event, dropped by name (JSON pointers). */
  readonly dropped: readonly string[];
  /** Fields that this adapter version has never seen; recorded, and the call goes on. */
  readonly unknownFields: readonly string[];
}
/** A payload that asks nothing: its events are recorded. */
export interface ObservedHook extends TranslationBase {
  readonly kind: "observed";
  /** The call whose result it tells, as far as the payload repeats it: what the session carries from it on is judged by it. */
  readonly reported?: GateRequest;
  /** Another adapter of the same runtime may tell the same result: the first report of what one call ran counts. */
  readonly endsOnce?: true;
}
/** A payload in front of a side effect: the gate is asked, its intent is recorded with the ruling. */
export interface GatedHook extends TranslationBase {
  readonly kind: "gated";
  readonly request: GateRequest;
}
/** A payload that bears the action in a form that this adapter does not know: vault, event, and no. */
export interface UnrecognizedHook {
  readonly kind: "unrecognized";
  /** Known as far as the payload told; the gate makes up an id where it is missing. */
  readonly call: Partial<CallIdentity>;
  readonly runtime: Runtime;
  readonly draft: Draft<"fabric.adapter.unrecognized">;
  /** Name of the runtime's event when it could be read, so that the refusal takes that event's form. */
  readonly eventName: string | null;
}
export type Translation = ObservedHook | GatedHook | UnrecognizedHook;

/** What goes back to the runtime: over HTTP, and for a command hook as exit code and streams. */
export interface RuntimeReply {
  readonly status: number;
  /** Null: an empty body. */
  readonly body: unknown;
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
  /** A no with an open ticket: a command hook that may wait asks the same again until a person decided. */
  readonly isTicket?: true;
}

/**
 * Pure translation of one runtime: raw hook → drafts and perhaps a gate request; answer → the runtime's own reply.
 * No clock, no randomness, no I/O.
 */
export interface Adapter {
  /** Path segment of `/v1/hooks/<runtime>` and `runtime.kind` of its events. */
  readonly runtime: string;
  readonly version: string;
  /** `bodyBytes` is the size of the payload as received. */
  translate(payload: unknown, bodyBytes: number): Translation;
  /** The reply to an observing hook, or to an answered gated one. */
  toReply(translation: Translation, answer: GateAnswer | null): RuntimeReply;
  /** The blocking form for this event when no answer could be made; `reason` starts with a reason code. */
  toRefusal(eventName: string | null, reason: string): RuntimeReply;
}
