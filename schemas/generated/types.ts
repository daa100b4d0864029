// Generated from schemas/*.avsc by `fabric schema generate`. Do not edit.

/** Milliseconds since 1970 UTC, an integer from 0 to 2^52. */
export type EpochMs = number;

export type Decision = "unknown" | "allow" | "deny" | "require_approval" | "defer" | "modify";

export type Risk = "unknown" | "low" | "medium" | "high" | "critical";

export type DataClass = "unknown" | "public" | "internal" | "confidential" | "secret";

export type EffectClass = "unknown" | "none" | "read" | "write" | "execute" | "network" | "spawn";

export type Outcome = "unknown" | "succeeded" | "failed" | "interrupted" | "blocked";

export type BreakerScope = "unknown" | "correlation" | "agent" | "tenant" | "all";

export type IncidentScope = "unknown" | "all" | "tenant" | "correlation" | "session" | "agent" | "user" | "tool";

export type LetterKind = "unknown" | "quarantine" | "dead";

export type GapCause = "unknown" | "retention" | "log_end_below_position" | "topic_missing" | "jump" | "topic_recreated";

export interface Runtime {
  /** Adapter name, or fabric for our own services. */
  kind: string;
  adapter_version: string;
  runtime_version: null | string;
  permission_mode: null | string;
  sandbox: null | string;
}

export interface Actor {
  user_id: null | string;
  agent_id: null | string;
}

export interface Execution {
  task_id: null | string;
  session_id: null | string;
  turn_id: null | string;
  tool_call_id: null | string;
  /** From 1; raised by a retry or redelivery of the same intent. */
  attempt: number;
}

export interface Policy {
  revision: string;
  risk: Risk;
  decision: null | Decision;
  reason_code: null | string;
  matched_rules: readonly string[];
}

export interface Subject {
  /** Fabric tool name, such as shell.run or file.write. */
  tool: null | string;
  action: null | string;
  resource_ref: null | string;
  data_class: DataClass;
}

export interface Trace {
  /** W3C Trace Context. */
  traceparent: string;
}

/** The shared part of every event. A type's own record is this plus its redacted_summary. */
export interface EnvelopeFields {
  /** evt_ and a UUID (v7; v8 when derived by a processor). Global dedupe key. */
  event_id: string;
  /** The topic's name. */
  type: string;
  /** major.minor. A consumer refuses a higher major. */
  schema_version: string;
  /** UTC; the client's claim. */
  occurred_at: EpochMs;
  /** UTC; ours. Windows, SLA and prices use this one. */
  recorded_at: EpochMs;
  tenant_id: string;
  /** Deployment environment of the agent: local, staging, production. */
  environment: string;
  runtime: Runtime;
  actor: Actor;
  execution: Execution;
  /** One user goal, across child agents and consumers. */
  correlation_id: string;
  /** event_id of the direct trigger, nothing else. */
  causation_id: null | string;
  /** human, agent, webhook, schedule, or processor:<name>. */
  origin: string;
  hop_count: number;
  automation_depth: number;
  policy: null | Policy;
  capability_id: null | string;
  approval_id: null | string;
  /** sha256: and hex, over the plan's RFC 8785 form. */
  plan_digest: null | string;
  effect_id: null | string;
  receipt_id: null | string;
  subject: null | Subject;
  /** vault:// reference of the raw payload. */
  payload_ref: null | string;
  /** hmac-sha256: and hex, under the tenant's key. */
  payload_digest: null | string;
  trace: null | Trace;
}

export type SessionSource = "unknown" | "startup" | "resume" | "clear" | "compact" | "fork";

/** A session began or continued. Also the heartbeat that the hooks are loaded. */
export interface AgentSessionStartedSummary {
  source: SessionSource;
  model: null | string;
  working_directory: null | string;
}

/** A session ended. */
export interface AgentSessionEndedSummary {
  reason: null | string;
}

export type CompactionTrigger = "unknown" | "manual" | "automatic";

/** The session's context was compacted. */
export interface AgentSessionCompactedSummary {
  trigger: CompactionTrigger;
  /** Size of the summary that replaced the context, in bytes of UTF-8. */
  summary_bytes: null | number;
}

export type TurnTrigger = "unknown" | "prompt" | "resume" | "subagent";

/** A turn began. */
export interface AgentTurnStartedSummary {
  trigger: TurnTrigger;
}

/** A turn came to an end, well or not. */
export interface AgentTurnCompletedSummary {
  outcome: Outcome;
  error_kind: null | string;
  /** Size of the last message, in bytes of UTF-8. */
  final_message_bytes: null | number;
  /** True when a hook made the agent go on after an earlier stop. */
  continued_by_hook: boolean;
  /** Tasks still running when the turn ended. */
  background_tasks: number;
}

/** A prompt was handed to the agent. */
export interface AgentPromptSubmittedSummary {
  /** Bytes of UTF-8. */
  prompt_bytes: number;
  /** Masked, at most 256 characters. */
  preview: string;
  /** Set when the prompt was expanded from a named command. */
  command_name: null | string;
}

/** A child agent began. */
export interface AgentSubagentStartedSummary {
  subagent_id: string;
  subagent_kind: null | string;
}

/** A child agent ended. */
export interface AgentSubagentStoppedSummary {
  subagent_id: string;
  subagent_kind: null | string;
  outcome: Outcome;
  /** Bytes of UTF-8. */
  final_message_bytes: null | number;
}

/** A model call ended. input_tokens counts all input once, cached and cache-written tokens included. */
export interface AgentModelCompletedSummary {
  model: string;
  outcome: Outcome;
  input_tokens: null | bigint;
  /** Part of input_tokens. */
  cached_input_tokens: null | bigint;
  /** Part of input_tokens. */
  cache_write_tokens: null | bigint;
  output_tokens: null | bigint;
  /** Part of output_tokens. */
  reasoning_tokens: null | bigint;
  duration_ms: null | bigint;
  /** Millionths of the price list's currency. */
  cost_micros: null | bigint;
  error_kind: null | string;
  /** The runtime's own id of the model call, once per session: two events with the same one tell of one call. Null where it has none. */
  model_call_id: null | string;
}

export type LifecycleSignal = "unknown" | "notice_shown" | "message_shown" | "workspace_moved" | "directory_added" | "file_changed" | "worktree_created" | "worktree_removed" | "configuration_changed" | "instructions_loaded" | "model_switch_requested" | "model_switched" | "compaction_requested" | "tool_batch_completed" | "todo_created" | "todo_completed" | "input_requested" | "input_answered" | "setup_ran" | "model_requested" | "hooks_loaded" | "hooks_unloaded";

/** A signal of the runtime that changes nothing for policy, kept for the record. */
export interface AgentLifecycleObservedSummary {
  signal: LifecycleSignal;
  /** Masked, at most 256 characters. */
  detail: null | string;
  path: null | string;
}

/** Intent: an agent asked to use a tool. Not a permission. */
export interface AgentToolRequestedSummary {
  effect_class: EffectClass;
  /** Bytes of the tool input as JSON. */
  input_bytes: number;
  /** Masked, at most 512 characters. */
  input_preview: string;
  /** Files that the input names, resolved against the working directory. */
  paths: readonly string[];
  working_directory: null | string;
  /** The runtime's own name of the tool. */
  tool_alias: null | string;
}

/** The gate allowed a tool call. */
export interface AgentToolAuthorizedSummary {
  decision_id: string;
  effect_class: EffectClass;
  /** True when the input was rewritten. */
  modified: boolean;
}

/** The gate refused a tool call. */
export interface AgentToolDeniedSummary {
  decision_id: string;
  effect_class: EffectClass;
  /** What the agent was told. */
  message: string;
}

/** The gate put a tool call off: what a rule needs to know is missing or too old. Nothing resumes by itself. */
export interface AgentToolDeferredSummary {
  decision_id: string;
  effect_class: EffectClass;
  /** What the agent was told. */
  message: string;
  /** Names of the facts that are missing. */
  waits_for: readonly string[];
  /** From here on the same call is denied. */
  deadline_at: EpochMs;
}

/** A plan that had been put off was asked for again and decided: the facts it waited for were there. */
export interface AgentDeferralAnsweredSummary {
  decision_id: string;
  effect_class: EffectClass;
  decision: Decision;
  /** When the plan was put off first. */
  deferred_since_at: EpochMs;
}

/** Fact: a tool call ended. */
export interface AgentToolCompletedSummary {
  outcome: Outcome;
  duration_ms: null | bigint;
  /** Bytes of the result as JSON or text. */
  output_bytes: null | number;
  /** Masked, at most 512 characters. */
  output_preview: null | string;
  /** Masked, at most 512 characters. */
  error_preview: null | string;
  /** The runtime's own name of the tool. */
  tool_alias: null | string;
}

/** Intent: the runtime asks whether a tool call may go on. */
export interface AgentPermissionRequestedSummary {
  effect_class: EffectClass;
  /** Masked, at most 512 characters. */
  input_preview: string;
  tool_alias: null | string;
}

export type Refuser = "unknown" | "runtime" | "user" | "gate";

/** The runtime itself refused a tool call. */
export interface AgentPermissionRefusedSummary {
  refused_by: Refuser;
  /** Masked, at most 512 characters. */
  reason: null | string;
  tool_alias: null | string;
}

/** A plan was frozen for a person to look at: what is approved is exactly this. */
export interface AgentEffectPreparedSummary {
  decision_id: string;
  effect_class: EffectClass;
  /** The frozen plan, masked, at most 2,048 characters; the digest binds the whole of it. */
  plan_preview: string;
  expires_at: EpochMs;
}

/** A person has to agree to a frozen plan. Expired means denied. */
export interface AgentApprovalRequestedSummary {
  decision_id: string;
  effect_class: EffectClass;
  /** 0 to 100. */
  risk_score: number;
  expires_at: EpochMs;
  /** What the agent was told. */
  message: string;
}

/** A person agreed to one plan, for one use. The actor is the approver. */
export interface AgentApprovalGrantedSummary {
  /** The decision that asked for it. */
  decision_id: string;
  /** The user on whose behalf it was asked for; never the approver. */
  requester_id: null | string;
  /** Masked, at most 512 characters. */
  note: null | string;
  decided_at: EpochMs;
}

/** A person refused a plan. The actor is the approver. */
export interface AgentApprovalRefusedSummary {
  /** The decision that asked for it. */
  decision_id: string;
  /** The user on whose behalf it was asked for. */
  requester_id: null | string;
  /** Masked, at most 512 characters. */
  note: null | string;
  decided_at: EpochMs;
}

/** Nobody answered in time, or nobody used the answer in time. */
export interface AgentApprovalExpiredSummary {
  /** The decision that asked for it. */
  decision_id: string;
  expired_at: EpochMs;
}

/** An approval does not count any more, because the plan is not the one that was agreed to, or was revoked. */
export interface AgentApprovalVoidedSummary {
  /** The decision that asked for it. */
  decision_id: string;
  /** Masked, at most 512 characters. */
  reason: string;
}

/** A call passed by using up an approval. */
export interface AgentApprovalConsumedSummary {
  /** The decision that used it. */
  decision_id: string;
}

/** A right to carry out one plan was issued. */
export interface AgentCapabilityIssuedSummary {
  effect_class: EffectClass;
  expires_at: EpochMs;
  max_calls: number;
}

/** Calls of a right were used. The actor is the resource that spent them; nobody can spend them again. */
export interface AgentCapabilitySpentSummary {
  usage_id: string;
  /** Used by this spend. */
  calls: number;
  /** Used up to and with this spend. */
  calls_used: number;
  max_calls: number;
}

export type RevocationScope = "unknown" | "capability" | "plan" | "session" | "subject";

/** A right was taken back before its time. The actor is who did it. */
export interface AgentCapabilityRevokedSummary {
  /** Masked, at most 512 characters. */
  reason: string;
  scope: RevocationScope;
  calls_used: number;
  max_calls: number;
}

/** A right came to its end with calls left. */
export interface AgentCapabilityExpiredSummary {
  expired_at: EpochMs;
  calls_used: number;
  max_calls: number;
}

/** A plan may not be carried out, whoever asks, until the time given. The actor is who said so. */
export interface AgentPlanRevokedSummary {
  /** Masked, at most 512 characters. */
  reason: string;
  /** How many rights ended with it. */
  capabilities: number;
  expires_at: EpochMs;
}

/** An effect was sent to the resource. What came of it is told by a receipt, or by nothing. */
export interface AgentEffectAttemptedSummary {
  effect_class: EffectClass;
  /** What carries it out, such as http. */
  connector: string;
  /** sha256: and hex over the key that the resource is given. */
  idempotency_key_digest: null | string;
}

/** The resource answered. */
export interface AgentEffectReceiptedSummary {
  effect_class: EffectClass;
  outcome: Outcome;
  /** From sending to the answer. */
  duration_ms: null | bigint;
  /** The resource's own word for it, such as an HTTP status. */
  status: null | string;
}

export type UnresolvedCause = "unknown" | "timeout" | "connection_lost" | "crash";

/** Whether the effect happened is not known: the answer is lost. Never sent again blindly. */
export interface AgentEffectUnresolvedSummary {
  effect_class: EffectClass;
  cause: UnresolvedCause;
}

/** The resource was asked by its idempotency key what became of an effect. */
export interface AgentEffectReconciledSummary {
  effect_class: EffectClass;
  outcome: Outcome;
  /** reconciler, or the person who settled it. */
  reconciled_by: string;
}

export type UngatedEvidence = "unknown" | "result_without_decision" | "session_without_gate" | "unfinished_item" | "rerun_outside_sandbox";

/** A tool ran without a decision of the gate before it. */
export interface AgentEffectUngatedSummary {
  effect_class: EffectClass;
  evidence: UngatedEvidence;
  /** Masked, at most 512 characters. */
  detail: null | string;
}

/** What ran is not the plan that was agreed to. */
export interface AgentPlanDivergedSummary {
  decision_id: string;
  expected_digest: string;
  actual_digest: null | string;
  /** Masked, at most 512 characters. */
  detail: null | string;
}

/** A person judged an episode. The last one by an author counts; the actor is the author. */
export interface AgentEpisodeLabelledSummary {
  episode_id: string;
  /** Lower case word, such as good, bad, unsafe. */
  label: string;
  /** 0-100. */
  score: null | number;
  /** Masked, at most 2,000 characters. */
  note: null | string;
  author: string;
  labelled_at: EpochMs;
}

export type UnrecognizedProblem = "unknown" | "not_json" | "not_an_object" | "unknown_event" | "unknown_value" | "wrong_type" | "missing_field" | "too_large";

/** A payload that an adapter could not understand. The bytes are in the vault; of a body past the limit, its size alone. */
export interface FabricAdapterUnrecognizedSummary {
  problem: UnrecognizedProblem;
  /** JSON pointer of the field. */
  field: null | string;
  event_name: null | string;
  body_bytes: number;
  /** True when the caller was told no because of it. */
  gating: boolean;
}

/** From here on the gate decides by this revision. The actor is who activated it. */
export interface FabricPolicyActivatedSummary {
  /** Its name. */
  bundle: string;
  revision: string;
  /** SHA-256 over the files of the bundle, hex. */
  digest: string;
  /** Null: there was none. */
  previous_revision: null | string;
  activated_by: string;
}

export type FaultKind = "unknown" | "transient" | "poison" | "refused" | "unknown_effect" | "fatal";

/** An input was set aside: quarantine could not be understood, dead could not be processed. */
export interface FabricLetterBuriedSummary {
  letter_id: string;
  kind: LetterKind;
  fault_kind: FaultKind;
  code: string;
  /** Masked, at most 512 characters. */
  detail: string;
  consumer: string;
  consumer_version: string;
  attempts: number;
  source_topic: string;
  source_partition: null | number;
  source_offset: null | bigint;
  source_event_id: null | string;
  /** Who has to look at it. */
  accountable: string;
}

/** A consumer stopped a partition because records that it never saw are gone. */
export interface FabricGapFoundSummary {
  consumer: string;
  source_topic: string;
  source_partition: number;
  expected_offset: bigint;
  found_offset: bigint;
  cause: GapCause;
}

export type RedriveOutcome = "unknown" | "processed" | "duplicate";

/** A letter's input went through the consumer that had set it aside, and only through that one. */
export interface FabricLetterRedrivenSummary {
  letter_id: string;
  redrive_id: string;
  /** duplicate: the event had been processed meanwhile. */
  outcome: RedriveOutcome;
  consumer: string;
  /** The version that processed it, not the one that had failed. */
  consumer_version: string;
  /** All tries, this one included. */
  attempts: number;
  source_topic: string;
  source_partition: number;
  source_offset: bigint;
  source_event_id: null | string;
  redriven_by: string;
}

/** A person put a letter away for good: its input will not be processed. */
export interface FabricLetterArchivedSummary {
  letter_id: string;
  kind: LetterKind;
  code: string;
  consumer: string;
  attempts: number;
  source_topic: string;
  source_partition: number;
  source_offset: bigint;
  source_event_id: null | string;
  archived_by: string;
  /** Masked. */
  reason: string;
}

/** A person sends letters of one consumer through it again. */
export interface FabricRedriveRequestedSummary {
  redrive_id: string;
  consumer: string;
  /** How many wait for it. */
  letters: number;
  /** The filter as it was given, in words. */
  selection: string;
  /** At most so many letters a second. */
  per_second: number;
  /** Letters that had been redriven as often as a letter may were asked for by name. */
  is_beyond_limit: boolean;
  requested_by: string;
  /** Masked. */
  reason: string;
}

/** A person stopped a redrive under way. */
export interface FabricRedriveStoppedSummary {
  redrive_id: string;
  consumer: string;
  /** How many had not gone through yet. */
  letters_left: number;
  /** It does not go on any more: its letters wait for nothing again. */
  is_given_up: boolean;
  stopped_by: string;
  /** Masked. */
  reason: string;
}

/** A person let a redrive that was stopped go on. */
export interface FabricRedriveResumedSummary {
  redrive_id: string;
  consumer: string;
  /** How many have not gone through yet. */
  letters_left: number;
  resumed_by: string;
  /** Masked. */
  reason: string;
}

export type ResumeChoice = "unknown" | "log_start" | "offset" | "log_end";

/** A person chose how a consumer goes on in a partition that a gap had stopped. What was lost stays lost. */
export interface FabricGapResumedSummary {
  consumer: string;
  source_topic: string;
  source_partition: number;
  /** Why it was stopped. */
  cause: GapCause;
  choice: ResumeChoice;
  /** Where the consumer stood. */
  stopped_offset: bigint;
  /** Where it goes on. */
  resumed_offset: bigint;
  resumed_by: string;
  /** Masked. */
  reason: string;
}

/** A person let events go out that a consumer's fan-out guard had held back. */
export interface FabricEmissionReleasedSummary {
  consumer: string;
  events: number;
  held_since_at: EpochMs;
  /** Why they were held back. */
  held_for: string;
  released_by: string;
  /** Masked. */
  reason: string;
}

/** A person threw events away that a consumer's fan-out guard had held back. */
export interface FabricEmissionDroppedSummary {
  consumer: string;
  events: number;
  held_since_at: EpochMs;
  /** Why they were held back. */
  held_for: string;
  dropped_by: string;
  /** Masked. */
  reason: string;
}

/** A person put an event back into the outbox that the broker had refused. */
export interface FabricPublicationRetriedSummary {
  refused_event_id: string;
  refused_type: string;
  /** Why it was refused. */
  code: string;
  retried_by: string;
  /** Masked. */
  reason: string;
}

/** A person put an event away that the broker had refused: it will not be published. */
export interface FabricPublicationArchivedSummary {
  refused_event_id: string;
  refused_type: string;
  /** Why it was refused. */
  code: string;
  archived_by: string;
  /** Masked. */
  reason: string;
}

/** A person corrects the ledger by a new entry; no entry is ever changed. */
export interface FabricCostCorrectedSummary {
  /** Names the correction: the same one again changes nothing. */
  correction_id: string;
  /** Event whose entries it corrects. */
  corrects_event_id: null | string;
  account: string;
  /** Millionths of the price list's currency; negative takes away. */
  amount_micros: bigint;
  cause: string;
  author: string;
}

/** A person closed a month of the ledger: what it stated then stands for good. Amounts are millionths of the price list's currency. */
export interface FabricCostClosedSummary {
  /** A UTC month such as 2026-11. */
  period: string;
  /** What was booked in the month, corrections included. */
  amount_micros: bigint;
  /** What had come late for months that were closed before, and no later one had stated yet. */
  carried_micros: bigint;
  /** Calls that ran in the month. */
  calls: bigint;
  /** Calls that are booked with 0, for want of a price or of tokens. */
  unpriced_calls: bigint;
  closed_by: string;
  note: null | string;
}

export type CostScope = "unknown" | "tenant" | "agent" | "user" | "model" | "tool" | "correlation";

/** A scope spent much more than its own history says. */
export interface FabricCostAnomalousSummary {
  scope: CostScope;
  scope_id: string;
  window_started_at: EpochMs;
  window_ms: bigint;
  observed_micros: bigint;
  expected_micros: bigint;
}

export type BudgetScope = "unknown" | "tenant" | "agent" | "user" | "model" | "tool" | "correlation";

export type LimitKind = "unknown" | "soft" | "hard";

/** Spending passed a limit. */
export interface FabricBudgetCrossedSummary {
  budget_id: string;
  scope: BudgetScope;
  scope_id: string;
  limit_kind: LimitKind;
  limit_micros: bigint;
  spent_micros: bigint;
  /** Such as 2026-11. */
  period: string;
}

/** A tenant's episodes are to be blank: what people and tools wrote in them goes, numbers, decisions and labels stay. Other projections and raw payloads are not touched by it. */
export interface FabricTenantErasedSummary {
  /** Content that was recorded up to here, whenever a consumer reads it. */
  erased_until_at: EpochMs;
  erased_by: string;
  reason: string;
}

export type TakeoverCause = "unknown" | "deferred" | "gate_timeout" | "effect_unresolved" | "letter" | "effect_ungated" | "approval_expired" | "breaker" | "plan_diverged" | "adapter_unrecognized" | "gap" | "budget";

/** Work waits for a person. */
export interface FabricTakeoverOpenedSummary {
  item_id: string;
  cause: TakeoverCause;
  /** Items of one key are one item. */
  cause_key: string;
  /** Masked, at most 256 characters. */
  title: string;
  due_at: EpochMs;
}

/** A person works on an item until the lease ends. */
export interface FabricTakeoverClaimedSummary {
  item_id: string;
  claimed_by: string;
  lease_ends_at: EpochMs;
}

/** A person wrote down something about an item. */
export interface FabricTakeoverNotedSummary {
  item_id: string;
  author: string;
  /** Masked, at most 2,000 characters. */
  note: string;
}

/** An item goes to another person. */
export interface FabricTakeoverReassignedSummary {
  item_id: string;
  from_person: null | string;
  to_person: string;
  reassigned_by: string;
}

export type TakeoverOutcome = "unknown" | "no_action" | "approval_proposed" | "redrive_proposed" | "incident_proposed" | "fixed_elsewhere";

/** A person closed an item. A proposal is a proposal: nothing acts on it by itself. */
export interface FabricTakeoverResolvedSummary {
  item_id: string;
  resolved_by: string;
  outcome: TakeoverOutcome;
  /** Masked, at most 2,000 characters. */
  note: null | string;
  /** What is proposed, for a person to carry out. */
  proposal: null | string;
}

/** An item is older than its kind may be. */
export interface FabricTakeoverBreachedSummary {
  item_id: string;
  due_at: EpochMs;
}

export type BreakerMeasure = "unknown" | "fan_out" | "cost_rate" | "failure_rate" | "denial_rate" | "lag";

/** A scope is read-only from here on. */
export interface FabricBreakerTrippedSummary {
  scope: BreakerScope;
  scope_id: string;
  measure: BreakerMeasure;
  /** In the measure's unit: a count, micros a minute, per mille, or milliseconds. */
  observed: bigint;
  threshold: bigint;
  window_ms: bigint;
  trip_id: null | string;
  window_ended_at: null | EpochMs;
  /** What the measure was taken from: decisions, results, events. */
  samples: null | bigint;
  /** When it ends by itself; null: a person resets it. */
  resets_at: null | EpochMs;
}

/** A person ended a scope's read-only state. */
export interface FabricBreakerResetSummary {
  scope: BreakerScope;
  scope_id: string;
  reset_by: string;
  cause: string;
  trip_id: null | string;
}

/** A person froze a scope: nothing of it is allowed until a person lifts it. The actor is who did it. */
export interface FabricIncidentDeclaredSummary {
  incident_id: string;
  /** A lower case word of the declarer's, such as runaway or leak. */
  kind: string;
  scope: IncidentScope;
  scope_id: string;
  /** Masked, at most 512 characters. */
  reason: string;
  declared_by: string;
}

/** A person lifted an incident. The actor is who did it. */
export interface FabricIncidentLiftedSummary {
  incident_id: string;
  scope: IncidentScope;
  scope_id: string;
  /** Masked, at most 512 characters. */
  reason: string;
  lifted_by: string;
}

export type ThrottleAction = "unknown" | "drop" | "delay" | "coalesce" | "sample" | "cut";

export type ThrottleScope = "unknown" | "tenant" | "agent" | "tool" | "type" | "correlation";

/** Observing events of a scope were dropped, delayed, coalesced, sampled or cut, and how many. */
export interface FabricThrottleAppliedSummary {
  /** The limit's id in its file; loop.causation and loop.hops are built in. */
  rule: string;
  action: ThrottleAction;
  scope: ThrottleScope;
  scope_id: string;
  event_type: string;
  limit: bigint;
  window_ms: bigint;
  /** How many it was applied to in the window so far, or the hops of a chain that was cut. */
  events: bigint;
}

/** A block of the audit trail was closed and signed. */
export interface FabricAuditSealedSummary {
  block_number: bigint;
  row_count: number;
  previous_digest: string;
  block_digest: string;
  key_id: string;
  /** Ed25519 over the block digest, base64url. */
  signature: string;
}

/** Event type → its own summary record. */
export interface Summaries {
  "agent.session.started": AgentSessionStartedSummary;
  "agent.session.ended": AgentSessionEndedSummary;
  "agent.session.compacted": AgentSessionCompactedSummary;
  "agent.turn.started": AgentTurnStartedSummary;
  "agent.turn.completed": AgentTurnCompletedSummary;
  "agent.prompt.submitted": AgentPromptSubmittedSummary;
  "agent.subagent.started": AgentSubagentStartedSummary;
  "agent.subagent.stopped": AgentSubagentStoppedSummary;
  "agent.model.completed": AgentModelCompletedSummary;
  "agent.lifecycle.observed": AgentLifecycleObservedSummary;
  "agent.tool.requested": AgentToolRequestedSummary;
  "agent.tool.authorized": AgentToolAuthorizedSummary;
  "agent.tool.denied": AgentToolDeniedSummary;
  "agent.tool.deferred": AgentToolDeferredSummary;
  "agent.deferral.answered": AgentDeferralAnsweredSummary;
  "agent.tool.completed": AgentToolCompletedSummary;
  "agent.permission.requested": AgentPermissionRequestedSummary;
  "agent.permission.refused": AgentPermissionRefusedSummary;
  "agent.effect.prepared": AgentEffectPreparedSummary;
  "agent.approval.requested": AgentApprovalRequestedSummary;
  "agent.approval.granted": AgentApprovalGrantedSummary;
  "agent.approval.refused": AgentApprovalRefusedSummary;
  "agent.approval.expired": AgentApprovalExpiredSummary;
  "agent.approval.voided": AgentApprovalVoidedSummary;
  "agent.approval.consumed": AgentApprovalConsumedSummary;
  "agent.capability.issued": AgentCapabilityIssuedSummary;
  "agent.capability.spent": AgentCapabilitySpentSummary;
  "agent.capability.revoked": AgentCapabilityRevokedSummary;
  "agent.capability.expired": AgentCapabilityExpiredSummary;
  "agent.plan.revoked": AgentPlanRevokedSummary;
  "agent.effect.attempted": AgentEffectAttemptedSummary;
  "agent.effect.receipted": AgentEffectReceiptedSummary;
  "agent.effect.unresolved": AgentEffectUnresolvedSummary;
  "agent.effect.reconciled": AgentEffectReconciledSummary;
  "agent.effect.ungated": AgentEffectUngatedSummary;
  "agent.plan.diverged": AgentPlanDivergedSummary;
  "agent.episode.labelled": AgentEpisodeLabelledSummary;
  "fabric.adapter.unrecognized": FabricAdapterUnrecognizedSummary;
  "fabric.policy.activated": FabricPolicyActivatedSummary;
  "fabric.letter.buried": FabricLetterBuriedSummary;
  "fabric.gap.found": FabricGapFoundSummary;
  "fabric.letter.redriven": FabricLetterRedrivenSummary;
  "fabric.letter.archived": FabricLetterArchivedSummary;
  "fabric.redrive.requested": FabricRedriveRequestedSummary;
  "fabric.redrive.stopped": FabricRedriveStoppedSummary;
  "fabric.redrive.resumed": FabricRedriveResumedSummary;
  "fabric.gap.resumed": FabricGapResumedSummary;
  "fabric.emission.released": FabricEmissionReleasedSummary;
  "fabric.emission.dropped": FabricEmissionDroppedSummary;
  "fabric.publication.retried": FabricPublicationRetriedSummary;
  "fabric.publication.archived": FabricPublicationArchivedSummary;
  "fabric.cost.corrected": FabricCostCorrectedSummary;
  "fabric.cost.closed": FabricCostClosedSummary;
  "fabric.cost.anomalous": FabricCostAnomalousSummary;
  "fabric.budget.crossed": FabricBudgetCrossedSummary;
  "fabric.tenant.erased": FabricTenantErasedSummary;
  "fabric.takeover.opened": FabricTakeoverOpenedSummary;
  "fabric.takeover.claimed": FabricTakeoverClaimedSummary;
  "fabric.takeover.noted": FabricTakeoverNotedSummary;
  "fabric.takeover.reassigned": FabricTakeoverReassignedSummary;
  "fabric.takeover.resolved": FabricTakeoverResolvedSummary;
  "fabric.takeover.breached": FabricTakeoverBreachedSummary;
  "fabric.breaker.tripped": FabricBreakerTrippedSummary;
  "fabric.breaker.reset": FabricBreakerResetSummary;
  "fabric.incident.declared": FabricIncidentDeclaredSummary;
  "fabric.incident.lifted": FabricIncidentLiftedSummary;
  "fabric.throttle.applied": FabricThrottleAppliedSummary;
  "fabric.audit.sealed": FabricAuditSealedSummary;
}

