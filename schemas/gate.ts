import { z } from "zod";

/** A JSON value as the gate takes it: what `JSON.parse` can make. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
/** A JSON object. */
export type JsonObject = { readonly [key: string]: Json };

const json: z.ZodType<Json> = z.lazy(() =>
  z.union([z.null(), z.boolean(), z.number(), z.string(), z.array(json), z.record(z.string(), json)]),
);
const identifier = z.string().min(1).max(256);

/** Longest tool name, so that it stays an index key. */
const toolNameMaxChars = 200;

/** Moments at which a runtime asks: before a tool runs, or when its own permission dialog would open. */
export const gatePhases = ["before_tool", "permission"] as const;

/**
 * The synchronous question, in the fabric's own words. Tenant, time and policy are never in it: they come from the
 * token, the clock and the bundle. `input` is the tool's input as the runtime would run it.
 */
export const gateRequestSchema = z.strictObject({
  runtime: z.string().regex(/^[a-z][a-z0-9-]{0,63}$/),
  session_id: identifier,
  /** The session that started this one, as the runtime tells it; what is known of one counts for the other. */
  parent_session_id: identifier.optional(),
  turn_id: identifier.optional(),
  tool_call_id: identifier.optional(),
  agent_id: identifier.optional(),
  user_id: identifier.optional(),
  phase: z.enum(gatePhases).default("before_tool"),
  tool: z
    .string()
    .max(toolNameMaxChars)
    .regex(/^[a-z][a-z0-9_]*(\.[A-Za-z0-9_-]+)+$/, "a tool name has the form `shell.run`"),
  tool_alias: z.string().max(toolNameMaxChars).optional(),
  input: z.record(z.string(), json),
  working_directory: z.string().max(4096).optional(),
  permission_mode: z.string().max(64).optional(),
  /**
   * The runtime puts its own dialog in front of the call when the answer says `confirm`, and only its user can answer it.
   * An adapter's word: what a caller of the gate's own routes writes here counts for nothing.
   */
  user_dialog: z.boolean().optional(),
  traceparent: z
    .string()
    .regex(/^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/)
    .optional(),
});
export type GateRequest = z.output<typeof gateRequestSchema>;

/** The five answers; nothing else is ever one. */
export const decisions = ["allow", "deny", "require_approval", "defer", "modify"] as const;
export type DecisionName = (typeof decisions)[number];

/** Limits that ride along with a right; several rules: the most restrictive of each. */
export const constraintsSchema = z.strictObject({
  network: z.enum(["none", "listed", "any"]).optional(),
  max_runtime_seconds: z.number().int().positive().optional(),
  paths: z.array(z.string()).optional(),
  max_calls: z.number().int().positive().optional(),
});
export type Constraints = z.output<typeof constraintsSchema>;

const riskLevel = z.enum(["unknown", "low", "medium", "high", "critical"]);

/** The gate's answer. Times are UTC ISO 8601; digests are `sha256:` and hex. */
export const gateAnswerSchema = z.strictObject({
  decision: z.enum(decisions),
  decision_id: z.string(),
  reason_code: z.string().regex(/^[A-Z][A-Z0-9_]*$/),
  message: z.string(),
  policy_revision: z.string(),
  plan_digest: z.string().nullable(),
  correlation_id: z.string(),
  capability: z
    .strictObject({ id: z.string(), token: z.string().nullable(), expires_at: z.string() })
    .optional(),
  approval: z.strictObject({ id: z.string(), expires_at: z.string() }).optional(),
  /** Facts that a deferred call waits for, and when waiting ends with a deny; the retry is the caller's. */
  defer: z.strictObject({ facts: z.array(z.string()), until: z.string() }).optional(),
  risk: z.strictObject({ score: z.number().int().min(0).max(100), level: riskLevel }).optional(),
  constraints: constraintsSchema,
  modified_input: z.record(z.string(), json).optional(),
  /** Beside an allow: only if the user at the runtime agrees in its own dialog. Never set unless `user_dialog` was asked with. */
  confirm: z.string().optional(),
  matched_rules: z.array(z.string()),
  labels: z.array(z.string()),
  /** True when this is the stored answer to the same call. */
  repeated: z.boolean(),
});
export type GateAnswer = z.output<typeof gateAnswerSchema>;

/** Every reason code that a decision can carry. Upper snake case; never renamed. */
export const reasonCodes = {
  ALLOWED: "a rule allows this",
  APPROVED: "a person approved exactly this plan",
  REWRITTEN: "allowed with the input that a rule put in place of the one asked for",
  STATIC_DENY: "a deny rule matches",
  TOOL_UNKNOWN: "the tool is not in the catalogue, so what it does is not known",
  INPUT_UNREADABLE: "the input is not what the tool takes",
  SCHEMA_MISMATCH: "the input does not validate against the tool's own schema",
  PAYLOAD_UNRECOGNIZED: "the adapter does not understand the payload",
  NO_RULE_SPOKE: "no rule allows this",
  NOT_AUTHORIZED: "an authorization rule forbids this",
  RULE_FAILED: "a rule could not be evaluated",
  TENANT_FROZEN: "the tenant is frozen",
  PLAN_REVOKED: "this plan was revoked",
  READ_ONLY_BREAKER: "the breaker put the call's goal, agent or tenant to read-only",
  INCIDENT_FROZEN: "an incident froze what the call belongs to",
  AUTOMATION_TOO_DEEP: "more agents have started each other than a policy allows",
  APPROVAL_REQUIRED: "a person has to agree first",
  APPROVAL_REFUSED: "a person refused this plan",
  TOO_MANY_APPROVALS: "the session has too many open approvals",
  FACT_MISSING: "a fact that a rule needs is missing or too old",
  FACT_DENIES: "a fact stands against this",
  DEFER_EXPIRED: "a fact that a rule needs did not come in time",
  RATE_LIMITED: "more calls in this window than a rule allows",
  BUDGET_SPENT: "a budget is spent",
  GATE_TIMEOUT: "the decision's time budget ran out",
  GATE_UNAVAILABLE: "the decision could not be recorded",
  OVERLOADED: "more calls wait than the gate takes",
  CONFLICT: "what the decision was based on kept changing",
  POLICY_MISSING: "the gate has no policy for this tenant",
  POLICY_UNAVAILABLE: "the policy could not be asked in time",
  LOCAL_PROFILE: "a tool without effect, answered by its own runtime",
} as const satisfies Record<string, string>;
export type ReasonCode = keyof typeof reasonCodes;
