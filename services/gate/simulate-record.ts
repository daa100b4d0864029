import { z } from "zod";
import type { GateRequest, Json, JsonObject } from "../../schemas/gate.ts";
import { constraintsSchema, decisions, gateRequestSchema } from "../../schemas/gate.ts";
import type { Operand } from "./classified.ts";
import type { Facts } from "./facts-of-call.ts";

/** What was answered, as far as it is compared. */
const recordedAnswerSchema = z.looseObject({
  decision: z.enum(decisions),
  reason_code: z.string().optional(),
  matched_rules: z.array(z.string()).optional(),
  plan_digest: z.string().nullable().optional(),
  policy_revision: z.string().optional(),
  constraints: constraintsSchema.optional(),
  labels: z.array(z.string()).optional(),
});
export type RecordedAnswer = z.output<typeof recordedAnswerSchema>;

/** A decision that was made before, with everything that it was made of. */
export interface RecordedDecision {
  /** Null for one of a file that names none. */
  readonly decisionId: string | null;
  readonly request: GateRequest;
  readonly facts: Facts;
  /** Content of the files that the call would run; null: not recorded. */
  readonly operands: readonly Operand[] | null;
  /** Where links led, at a gate on the agent's machine. */
  readonly realPaths?: ReadonlyMap<string, string>;
  /** The facts were stored by an earlier version, or not at all: what was not there is neutral. */
  readonly isPartial: boolean;
  /** Null: nobody answered it yet. */
  readonly answer: RecordedAnswer | null;
}

/** A recorded decision, or why it is none. */
export type RecordedLine =
  | { readonly kind: "decision"; readonly record: RecordedDecision }
  | { readonly kind: "unreadable"; readonly decisionId: string | null; readonly why: string };

/** Where facts that were not stored come from. */
export interface NeutralFacts {
  readonly nowMs: number;
  readonly tenantId: string;
  readonly environment: string;
}

const approvalSchema = z.object({
  approvalId: z.string(),
  state: z.enum(["pending", "approved", "refused", "expired", "consumed", "voided"]),
  planDigest: z.string(),
  rules: z.array(z.string()).default([]),
  expiresAtMs: z.number(),
});
const jsonValue = z.unknown().transform((value) => value as Json);
const holdSchema = z.object({
  id: z.string(),
  source: z.enum(["breaker", "incident"]),
  mode: z.enum(["read_only", "frozen"]),
  scope: z.enum(["all", "tenant", "correlation", "session", "agent", "user", "tool"]),
  scopeId: z.string(),
  reason: z.string(),
});
const operandSchema = z.object({ path: z.string(), digest: z.string().nullable() });
/** Every field may be absent: an absent one makes the facts partial, a wrong one makes them unreadable. */
const storedFactsSchema = z.object({
  nowMs: z.number().optional(),
  environment: z.string().optional(),
  tenant: z
    .object({
      id: z.string().optional(),
      state: z.enum(["active", "frozen"]).optional(),
      version: z.number().optional(),
    })
    .optional(),
  session: z
    .object({
      version: z.number().optional(),
      labels: z.array(z.string()).optional(),
      openApprovals: z.number().optional(),
      deferredSinceMs: z.number().nullable().optional(),
      automationDepth: z.number().optional(),
    })
    .optional(),
  approval: approvalSchema.nullable().optional(),
  isRevoked: z.boolean().optional(),
  counters: z.record(z.string(), z.number()).optional(),
  dated: z.record(z.string(), z.object({ value: jsonValue, atMs: z.number() })).optional(),
  holds: z.array(holdSchema).optional(),
  operands: z.array(operandSchema).optional(),
  real_paths: z.record(z.string(), z.string()).optional(),
});

/** Facts as they were stored, with neutral values for what was not. Throws on facts of another form. */
export function toFacts(
  stored: unknown,
  neutral: NeutralFacts,
): Pick<RecordedDecision, "facts" | "operands" | "isPartial" | "realPaths"> {
  const given = storedFactsSchema.parse(stored ?? {});
  let isPartial = false;
  function or<T>(value: T | undefined, fallback: T): T {
    if (value === undefined) isPartial = true;
    return value === undefined ? fallback : value;
  }
  const facts: Facts = {
    nowMs: or(given.nowMs, neutral.nowMs),
    environment: or(given.environment, neutral.environment),
    tenant: {
      id: or(given.tenant?.id, neutral.tenantId),
      state: or(given.tenant?.state, "active"),
      version: or(given.tenant?.version, 1),
    },
    session: {
      version: or(given.session?.version, 0),
      labels: or(given.session?.labels, []),
      openApprovals: or(given.session?.openApprovals, 0),
      deferredSinceMs: or(given.session?.deferredSinceMs, null),
      ...(given.session?.automationDepth === undefined
        ? {}
        : { automationDepth: given.session.automationDepth }),
    },
    approval: or(given.approval, null),
    isRevoked: or(given.isRevoked, false),
    counters: or(given.counters, {}),
    dated: or(given.dated, {}),
    ...(given.holds === undefined ? {} : { holds: given.holds }),
  };
  const realPaths = new Map(Object.entries(given.real_paths ?? {}));
  return { facts, operands: given.operands ?? null, isPartial, realPaths };
}

/** One recorded decision of untrusted parts: a row of the database, or a line of a file. */
export function toRecordedLine(
  parts: {
    readonly decisionId: string | null;
    readonly request: unknown;
    readonly facts: unknown;
    readonly operands?: unknown;
    readonly answer: unknown;
  },
  neutral: NeutralFacts,
): RecordedLine {
  const { decisionId } = parts;
  const request = toRequest(parts.request);
  if (typeof request === "string") return { kind: "unreadable", decisionId, why: request };
  const answer = parts.answer == null ? null : recordedAnswerSchema.safeParse(parts.answer);
  if (answer !== null && !answer.success)
    return { kind: "unreadable", decisionId, why: "its answer is none" };
  try {
    const known = toFacts(parts.facts, neutral);
    const operands =
      parts.operands === undefined ? known.operands : z.array(operandSchema).parse(parts.operands);
    return {
      kind: "decision",
      record: { ...known, decisionId, request, operands, answer: answer?.data ?? null },
    };
  } catch {
    return { kind: "unreadable", decisionId, why: "its facts have another form" };
  }
}

/** A request of a recording; a text says what is wrong with it. The input stays as it came, every key of it. */
export function toRequest(value: unknown): GateRequest | string {
  const parsed = gateRequestSchema.safeParse(value);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    return `its request does not fit: ${issue?.path.map(String).join(".") ?? ""} ${issue?.message ?? ""}`.trim();
  }
  // The parser drops a key named `__proto__`, and what is judged has to be what would run.
  return { ...parsed.data, input: (value as { readonly input: JsonObject }).input };
}
