import { own, semantic } from "./conventions.ts";
import type { Attributes, SpanTopic } from "./words.ts";

/** Names of few values, as backends group by them: what differs from call to call is in the attributes. */
export function toSpanName(topic: SpanTopic, attributes: Attributes): string {
  const text = (name: string): string | undefined => {
    const value = attributes[name];
    return typeof value === "string" ? value : undefined;
  };
  switch (topic) {
    case "session":
    case "agent":
      return join("invoke_agent", text(semantic.ATTR_GEN_AI_AGENT_NAME));
    case "turn":
      return "turn";
    case "call":
      return join("execute_tool", text(semantic.ATTR_GEN_AI_TOOL_NAME));
    case "run":
      return join("run", text(semantic.ATTR_GEN_AI_TOOL_NAME));
    case "model":
      return join("chat", text(semantic.ATTR_GEN_AI_REQUEST_MODEL));
    case "compaction":
      return "compact context";
    case "decision":
      return join("gate", text(own.decision));
    case "approval":
      return "approval wait";
    case "capability":
      return "capability issued";
    case "spend":
      return "capability spent";
    case "revocation":
      return `capability ${text(own.outcome) ?? "revoked"}`;
    case "effect":
      return join("effect", text(own.connector));
    case "reconciliation":
      return "effect reconciled";
    case "ungated":
      return "ungated effect";
    case "divergence":
      return "plan diverged";
  }
}

function join(first: string, second: string | undefined): string {
  return second === undefined ? first : `${first} ${second}`;
}
