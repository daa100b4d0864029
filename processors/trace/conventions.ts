/**
 * Names of attributes, pinned: copied as facts from `@opentelemetry/semantic-conventions` 1.45.0 (its incubating entry
 * point; messaging and GenAI are in development there). A new version of the conventions is a change of this file alone;
 * conventions.test.ts compares it with the installed package.
 */
export const conventionsVersion = "1.45.0";

/** Attributes of the conventions, by their name there. */
export const semantic = {
  ATTR_ERROR_TYPE: "error.type",
  ATTR_GEN_AI_AGENT_ID: "gen_ai.agent.id",
  ATTR_GEN_AI_AGENT_NAME: "gen_ai.agent.name",
  ATTR_GEN_AI_CONVERSATION_ID: "gen_ai.conversation.id",
  ATTR_GEN_AI_OPERATION_NAME: "gen_ai.operation.name",
  GEN_AI_OPERATION_NAME_VALUE_CHAT: "chat",
  GEN_AI_OPERATION_NAME_VALUE_EXECUTE_TOOL: "execute_tool",
  GEN_AI_OPERATION_NAME_VALUE_INVOKE_AGENT: "invoke_agent",
  ATTR_GEN_AI_PROVIDER_NAME: "gen_ai.provider.name",
  GEN_AI_PROVIDER_NAME_VALUE_ANTHROPIC: "anthropic",
  GEN_AI_PROVIDER_NAME_VALUE_GCP_GEMINI: "gcp.gemini",
  GEN_AI_PROVIDER_NAME_VALUE_OPENAI: "openai",
  ATTR_GEN_AI_REQUEST_MODEL: "gen_ai.request.model",
  ATTR_GEN_AI_TOOL_CALL_ID: "gen_ai.tool.call.id",
  ATTR_GEN_AI_TOOL_NAME: "gen_ai.tool.name",
  ATTR_GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS: "gen_ai.usage.cache_creation.input_tokens",
  ATTR_GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: "gen_ai.usage.cache_read.input_tokens",
  ATTR_GEN_AI_USAGE_INPUT_TOKENS: "gen_ai.usage.input_tokens",
  ATTR_GEN_AI_USAGE_OUTPUT_TOKENS: "gen_ai.usage.output_tokens",
  ATTR_GEN_AI_USAGE_REASONING_OUTPUT_TOKENS: "gen_ai.usage.reasoning.output_tokens",
  ATTR_MESSAGING_BATCH_MESSAGE_COUNT: "messaging.batch.message_count",
  ATTR_MESSAGING_CONSUMER_GROUP_NAME: "messaging.consumer.group.name",
  ATTR_MESSAGING_DESTINATION_NAME: "messaging.destination.name",
  ATTR_MESSAGING_DESTINATION_PARTITION_ID: "messaging.destination.partition.id",
  ATTR_MESSAGING_KAFKA_OFFSET: "messaging.kafka.offset",
  ATTR_MESSAGING_MESSAGE_ID: "messaging.message.id",
  ATTR_MESSAGING_OPERATION_NAME: "messaging.operation.name",
  ATTR_MESSAGING_OPERATION_TYPE: "messaging.operation.type",
  MESSAGING_OPERATION_TYPE_VALUE_PROCESS: "process",
  MESSAGING_OPERATION_TYPE_VALUE_RECEIVE: "receive",
  MESSAGING_OPERATION_TYPE_VALUE_SEND: "send",
  ATTR_MESSAGING_SYSTEM: "messaging.system",
  MESSAGING_SYSTEM_VALUE_KAFKA: "kafka",
} as const;

/** Attributes of our own: what the conventions have no name for. */
export const own = {
  correlation: "fabric.correlation.id",
  tenant: "fabric.tenant.id",
  environment: "fabric.environment",
  runtime: "fabric.runtime",
  user: "fabric.user.id",
  turn: "fabric.turn.id",
  trigger: "fabric.trigger",
  outcome: "fabric.outcome",
  action: "fabric.tool.action",
  effectClass: "fabric.effect.class",
  decision: "fabric.decision",
  decisionId: "fabric.decision.id",
  reasonCode: "fabric.reason_code",
  risk: "fabric.risk",
  revision: "fabric.policy.revision",
  rules: "fabric.policy.matched_rules",
  planDigest: "fabric.plan.digest",
  /** A call passed by using the approval up. */
  consumed: "fabric.approval.consumed",
  approvalId: "fabric.approval.id",
  capabilityId: "fabric.capability.id",
  calls: "fabric.capability.calls",
  effectId: "fabric.effect.id",
  receiptId: "fabric.receipt.id",
  connector: "fabric.connector",
  costMicros: "fabric.cost.micros",
  /** Span that is known only because others name it: no event of its own came. */
  synthetic: "fabric.synthetic",
  /** Span whose end no event told. */
  open: "fabric.open",
  /** Milliseconds that the start was moved forward, because it lay before its parent's. */
  clampedMs: "fabric.clock.clamped_ms",
  /** Span whose parent cannot be had: it hangs on the root. */
  adopted: "fabric.parent.missing",
  /** Events of the whole correlation, on its root. */
  events: "fabric.events",
  /** True on a root whose correlation has more spans than are kept. */
  truncated: "fabric.truncated",
} as const;

/** Who serves a model, where its name tells; undefined otherwise. */
export function providerOf(model: string): string | undefined {
  if (model.startsWith("claude")) return semantic.GEN_AI_PROVIDER_NAME_VALUE_ANTHROPIC;
  if (/^(gpt|o[0-9]|codex)/.test(model)) return semantic.GEN_AI_PROVIDER_NAME_VALUE_OPENAI;
  if (model.startsWith("gemini")) return semantic.GEN_AI_PROVIDER_NAME_VALUE_GCP_GEMINI;
  return undefined;
}
