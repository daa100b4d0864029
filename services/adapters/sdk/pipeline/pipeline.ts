import type { GateClient } from "../gate/gate-client.ts";
import type { JsonObject } from "../json.ts";
import type { Lifecycle } from "../lifecycle.ts";
import type { HookedCall } from "../registry/hook-points.ts";
import type { ApprovalService } from "./approval.ts";
import type { Execution } from "./execute.ts";
import { execute } from "./execute.ts";
import type { CallLedgers } from "./ledger.ts";
import { createLedgers } from "./ledger.ts";
import type { BlockedOutcome, ToolOutcome } from "./outcome.ts";
import { toBlocked, toText } from "./outcome.ts";
import type { Guard, PreparedCall } from "./prepare.ts";
import { prepare, readInput, toHookedCall, toPlace } from "./prepare.ts";
import type { ProposedCall, Tool } from "./tool.ts";

export interface ToolPipelineOptions {
  readonly lifecycle: Lifecycle;
  readonly gate: Pick<GateClient, "decide">;
  readonly tools: readonly Tool[];
  /** Where a person's word comes from; without one a call that needs it is blocked with its ticket. */
  readonly approvals?: ApprovalService;
  readonly guards?: readonly Guard[];
  /** Time of a body that names none; default two minutes. */
  readonly timeoutMs?: number;
  /** Longest wait for a person; default 15 minutes. */
  readonly approvalTimeoutMs?: number;
  /** Entries kept in each ledger; default 10,000. */
  readonly ledgerMax?: number;
}

/** Runs tool calls through the six stages. */
export interface ToolPipeline {
  /** Never rejects for what a tool, a handler or the gate does: every call has an outcome for the loop. */
  run(proposed: ProposedCall, options?: { readonly signal?: AbortSignal }): Promise<ToolOutcome>;
  readonly ledgers: CallLedgers;
}

const defaultTimeoutMs = 120_000;
const defaultApprovalTimeoutMs = 15 * 60_000;
const defaultLedgerMax = 10_000;

/**
 * Makes a pipeline: prepare (handlers, gate, approval, guard), execute (time, repetition), the body, its result, the
 * handlers of results, and the record. A call that is blocked never reaches the body.
 */
export function createToolPipeline(options: ToolPipelineOptions): ToolPipeline {
  const { lifecycle, gate } = options;
  const { hooks } = lifecycle;
  const tools = new Map(options.tools.map((tool) => [tool.name, tool]));
  if (tools.size !== options.tools.length) throw new RangeError("two tools have the same name");
  const ledgers = createLedgers(options.ledgerMax ?? defaultLedgerMax);
  /** Calls that run or ran: the same id again would do it twice. */
  const entered = new Set<string>();

  return { run, ledgers };

  async function run(
    proposed: ProposedCall,
    { signal }: { signal?: AbortSignal } = {},
  ): Promise<ToolOutcome> {
    const stopping = signal ?? new AbortController().signal;
    const tool = tools.get(proposed.tool);
    if (tool === undefined) {
      return block(proposed, toBlocked("guard", "TOOL_UNKNOWN", `this harness has no tool ${proposed.tool}`));
    }
    const prepared = await prepare(
      proposed,
      tool,
      {
        hooks,
        gate,
        approvals: options.approvals ?? null,
        guards: options.guards ?? [],
        approvalTimeoutMs: options.approvalTimeoutMs ?? defaultApprovalTimeoutMs,
      },
      stopping,
    );
    if ("blocked" in prepared) return block(proposed, prepared.blocked);
    const key = JSON.stringify([proposed.sessionId, proposed.id]);
    if (entered.has(key)) {
      return block(
        proposed,
        toBlocked("guard", "CALL_REPEATED", "a call of this id ran already; ask with a new one"),
      );
    }
    enter(key);
    return finish(prepared.ready, await execute(tool, prepared.ready, toExecuteOptions(proposed), stopping));
  }

  function toExecuteOptions({ id, sessionId }: ProposedCall): Parameters<typeof execute>[2] {
    return {
      timeoutMs: options.timeoutMs ?? defaultTimeoutMs,
      onLateEnd: (how) => ledgers.endLate(id, sessionId, how),
    };
  }

  function enter(key: string): void {
    entered.add(key);
    if (entered.size <= (options.ledgerMax ?? defaultLedgerMax)) return;
    const [oldest] = entered;
    if (oldest !== undefined) entered.delete(oldest);
  }

  /** Recorded as refused, and not as used. */
  async function block(proposed: ProposedCall, blocked: BlockedOutcome): Promise<ToolOutcome> {
    const { by, reasonCode, message, handler } = blocked;
    const rest = handler === undefined ? {} : { handler };
    const { id: callId, sessionId, tool } = proposed;
    ledgers.addBlocked({ callId, sessionId, tool, by, reasonCode, message, ...rest });
    const call = toCallOf(proposed);
    await lifecycle.tell("ToolBlocked", { ...toPlace(proposed), call, by, reasonCode, message, ...rest });
    return blocked;
  }

  function toCallOf(proposed: ProposedCall): HookedCall {
    const anything: Tool = { name: proposed.tool, body: () => null };
    const read = readInput(anything, proposed.input);
    const input: JsonObject = "blocked" in read ? {} : read.input;
    return toHookedCall(proposed, input, hooks.origin());
  }

  /** The last three stages: what the body said, what the handlers make of it, the record. */
  async function finish(prepared: PreparedCall, execution: Execution): Promise<ToolOutcome> {
    const { place, call } = prepared;
    const durationMs = Math.round(execution.durationMs);
    if (execution.status !== "succeeded") {
      const { status, error } = execution;
      note(prepared, execution, status);
      const told = await lifecycle.tellNow("PostToolUseFailure", {
        ...place,
        call,
        error,
        outcome: status,
        durationMs,
      });
      const context = [...prepared.context, ...told.context];
      const { input } = call;
      if (told.denied !== null && status === "failed") {
        const withheld = `what it says is withheld: ${told.denied.message}`;
        return { status, input, error: withheld, text: `the tool failed; ${withheld}`, context };
      }
      return status === "failed"
        ? { status, input, error, text: `the tool failed: ${error}`, context }
        : {
            status,
            input,
            text: `OUTCOME_UNKNOWN: ${error}; it may have happened: look before you do it again`,
            context,
          };
    }
    const told = await lifecycle.tellNow("PostToolUse", {
      ...place,
      call,
      output: execution.output,
      durationMs,
    });
    const context = [...prepared.context, ...told.context];
    const { input } = call;
    if (told.denied !== null) {
      note(prepared, execution, "withheld");
      const { handler, message } = told.denied;
      const text = `RESULT_WITHHELD: ${message}; the tool ran, its result is not shown`;
      return { status: "withheld", input, by: handler, text, context };
    }
    note(prepared, execution, "succeeded");
    const { output } = told.event;
    return {
      status: "succeeded",
      input,
      output,
      text: toText(output),
      context,
      replacedBy: told.rewrittenBy,
    };
  }

  function note(
    { place, call, decision, inputDigest }: PreparedCall,
    { attempts, durationMs }: Execution,
    status: "succeeded" | "withheld" | "failed" | "unknown",
  ): void {
    ledgers.addExecuted({
      callId: call.id,
      sessionId: place.sessionId,
      tool: call.tool,
      inputDigest,
      attempts,
      status,
      decisionId: decision.decisionId,
      durationMs: Math.round(durationMs),
    });
  }
}
