import type { HookReplies } from "../../services/adapters/sdk/registry/hook-points.ts";
import type { Lifecycle, ToolOutcome, ToolPipeline } from "../../services/adapters/sdk/sdk.ts";

/** What the model is shown, in order. */
export type Message =
  | { readonly role: "user" | "assistant" | "context"; readonly text: string }
  | {
      readonly role: "tool";
      readonly callId: string;
      readonly status: ToolOutcome["status"];
      readonly text: string;
    };
export interface ModelCall {
  readonly id: string;
  readonly tool: string;
  readonly input: unknown;
}
/** A model's turn: tools to call, or the last word. */
export type ModelStep = { readonly calls: readonly ModelCall[] } | { readonly say: string };
/** A made-up model: it decides by what it was shown. */
export type Model = (history: readonly Message[]) => ModelStep;

export interface AgentRun {
  readonly history: readonly Message[];
  readonly proposed: readonly ModelCall[];
  readonly finalMessage: string | null;
}

/** Steps of a turn; a made-up model that goes round in circles ends there. */
const stepsMax = 20;

/** An agent of one's own, as small as one can be: it runs a tool loop through the SDK and does nothing beside it. */
export async function runExampleAgent(options: {
  readonly lifecycle: Lifecycle;
  readonly pipeline: ToolPipeline;
  readonly model: Model;
  readonly sessionId: string;
  readonly prompt: string;
  readonly workingDirectory?: string;
}): Promise<AgentRun> {
  const { lifecycle, pipeline, model, sessionId } = options;
  const turnId = `${sessionId}-turn-1`;
  const place = { sessionId, turnId };
  const history: Message[] = [];
  const proposed: ModelCall[] = [];
  const started = await lifecycle.tell("SessionStart", { sessionId, source: "startup", model: "made-up" });
  const prompted = await lifecycle.tell("UserPromptSubmit", { ...place, prompt: options.prompt });
  await lifecycle.tell("TurnStart", { ...place, trigger: "prompt" });
  const refusal = started.denied ?? prompted.denied;
  if (refusal !== null) {
    await lifecycle.tell("SessionEnd", { sessionId, reason: refusal.message });
    return { history: [{ role: "context", text: refusal.message }], proposed, finalMessage: null };
  }
  for (const text of [...started.context, ...prompted.context]) history.push({ role: "context", text });
  history.push({ role: "user", text: prompted.event.prompt });

  let finalMessage: string | null = null;
  for (let step = 0; step < stepsMax && finalMessage === null; step += 1) {
    const answer = model(history);
    await lifecycle.tell("ModelCompleted", {
      ...place,
      model: "made-up",
      outcome: "succeeded",
      inputTokens: 1,
      outputTokens: 1,
    });
    if ("say" in answer) {
      const stop = await lifecycle.tell("Stop", {
        ...place,
        finalMessage: answer.say,
        continuedByHook: step > 0,
      });
      const [more]: readonly NonNullable<HookReplies["Stop"]["goOn"]>[] = stop.goOn;
      if (more === undefined) finalMessage = answer.say;
      history.push({ role: "assistant", text: answer.say });
      if (more !== undefined) history.push({ role: "context", text: more });
      continue;
    }
    proposed.push(...answer.calls);
    // Calls of one answer run side by side; what came of them is told in the order of the calls.
    const outcomes = await Promise.all(
      answer.calls.map((call) =>
        pipeline.run({
          ...place,
          ...call,
          ...(options.workingDirectory === undefined ? {} : { workingDirectory: options.workingDirectory }),
        }),
      ),
    );
    outcomes.forEach((outcome, at) => {
      const callId = answer.calls[at]?.id ?? "";
      history.push({ role: "tool", callId, status: outcome.status, text: outcome.text });
      for (const text of outcome.context) history.push({ role: "context", text });
    });
  }
  await lifecycle.tell("TurnEnd", {
    ...place,
    outcome: finalMessage === null ? "interrupted" : "succeeded",
    finalMessage: finalMessage ?? "",
  });
  await lifecycle.tell("SessionEnd", { sessionId, reason: "completed" });
  return { history, proposed, finalMessage };
}
