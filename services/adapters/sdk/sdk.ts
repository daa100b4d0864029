// What a harness of one's own imports as `policy-hook-fabric/sdk`. This file is the package's entry, so it gathers.
export type { Json, JsonObject } from "./json.ts";
export { createHookRegistry } from "./registry/registry.ts";
export type {
  Denial,
  HandlerRecord,
  HandlerSurroundings,
  HookHandler,
  HookObserver,
  HookOptions,
  HookOutcome,
  HookRegistry,
  HookRegistryOptions,
} from "./registry/registry.ts";
export type {
  Blocker,
  HookEvents,
  HookPoint,
  HookReplies,
  HookedCall,
  Outcome,
  Place,
  PolicyPoint,
} from "./registry/hook-points.ts";
export type { Condition, Match } from "./registry/matchers.ts";
export { installHookFile } from "./registry/hook-file.ts";
export type { InstalledHookFile } from "./registry/hook-file.ts";
export { HookFileError } from "./registry/hook-file-entries.ts";
export { createLifecycle } from "./lifecycle.ts";
export type { Lifecycle } from "./lifecycle.ts";
export { createGateClient } from "./gate/gate-client.ts";
export type { GateClient, GateClientOptions, GateClientState } from "./gate/gate-client.ts";
export type { CallConstraints, GateDecision, GateQuestion } from "./gate/gate-answer.ts";
export { createToolPipeline } from "./pipeline/pipeline.ts";
export type { ToolPipeline, ToolPipelineOptions } from "./pipeline/pipeline.ts";
export { UnknownEffect } from "./pipeline/tool.ts";
export type { BodySurroundings, ProposedCall, Tool } from "./pipeline/tool.ts";
export type { ToolOutcome } from "./pipeline/outcome.ts";
export type { BlockedCall, CallLedgers, ExecutedCall } from "./pipeline/ledger.ts";
export type { Guard } from "./pipeline/prepare.ts";
export { createTicketWaiter } from "./pipeline/approval.ts";
export type { ApprovalAnswer, ApprovalQuestion, ApprovalService } from "./pipeline/approval.ts";
export { createInterceptorHost } from "./agent-hooks/interceptor-host.ts";
export type { Emitted, InterceptorHost, InterceptorHostOptions } from "./agent-hooks/interceptor-host.ts";
export type {
  AgentContext,
  ApprovalResolver,
  Composition,
  IdentityProvider,
  InterceptionPoint,
  Interceptor,
  Verdict,
} from "./agent-hooks/interception.ts";
