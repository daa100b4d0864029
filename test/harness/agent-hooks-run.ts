import { isDeepStrictEqual } from "node:util";
import { identify } from "../../services/adapters/sdk/agent-hooks/context.ts";
import type { Emitted } from "../../services/adapters/sdk/agent-hooks/interceptor-host.ts";
import { createInterceptorHost } from "../../services/adapters/sdk/agent-hooks/interceptor-host.ts";
import type {
  Composition,
  IdentityProvider,
  Interceptor,
} from "../../services/adapters/sdk/agent-hooks/interception.ts";
import { applyTransform } from "../../services/adapters/sdk/agent-hooks/transform.ts";
import type { Json, JsonObject, Tool } from "../../services/adapters/sdk/sdk.ts";
import { createHookRegistry, createLifecycle, createToolPipeline } from "../../services/adapters/sdk/sdk.ts";
import type { ModelResponse, Vector, VectorRun, VectorTool } from "./agent-hooks-vectors.ts";
import { playInterceptor, playResolver } from "./agent-hooks-vectors.ts";

const toComposition = ({ composition }: Vector): Composition =>
  composition?.profile === "sequential/run_all"
    ? { profile: "sequential/run_all" }
    : { profile: "sequential/first_deny", on_approval: composition?.on_approval ?? "stop" };

const toProvider = ({ identity_provider: name }: Vector): IdentityProvider => {
  if (name === undefined || name === "jcs-sha256") return "jcs-sha256";
  if (name === null) return null;
  return {
    name,
    identify() {
      throw new Error("scripted fault");
    },
  };
};

/** A tool that answers as the vector says, and keeps what it was called with. */
const toTool = ({ name, behavior }: VectorTool, invocations: { name: string; args: Json }[]): Tool => ({
  name,
  body(input) {
    const clause = behavior.find(
      (one) => one.when_args === undefined || isDeepStrictEqual(one.when_args, input),
    );
    if (clause === undefined) throw new Error("no such call in the vector");
    invocations.push({ name, args: input });
    if (clause.is_error === true) throw new Error(JSON.stringify(clause.return));
    return clause.return;
  },
});

/** Answers yes to everything: here the interceptors decide. */
const openGate = {
  decide: () =>
    Promise.resolve({
      decision: "allow",
      reasonCode: "ALLOWED",
      message: "",
      decisionId: "dec_1",
      policyRevision: "policy@2026-11-30.1",
      labels: [],
      constraints: {},
      planDigest: null,
      capability: null,
      modifiedInput: null,
    } as const),
};

/** Runs one vector: an agent's loop over the SDK's host and its pipeline. */
export const runVector = async (vector: Vector): Promise<VectorRun> => {
  const { scenario } = vector;
  const shown: JsonObject[] = [];
  const records: JsonObject[] = [];
  const invocations: { name: string; args: Json }[] = [];
  const scripts = vector.interceptor_scripts ?? [vector.interceptor_script ?? []];
  const interceptors = scripts.map((rules, index): Interceptor => ({
    name: `script-${String(index)}`,
    intercept(context) {
      if (index === 0) shown.push(structuredClone(context));
      return playInterceptor(rules, context);
    },
  }));
  const approvals = vector.approval_script ?? [];
  const redacted = vector.redact_for_approval ?? [];
  const host = createInterceptorHost({
    agent: { id: "vector-agent", framework: "policy-hook-fabric" },
    sessionId: vector.id,
    interceptors,
    composition: toComposition(vector),
    mode: vector.mode ?? "enforce",
    identityProvider: toProvider(vector),
    resolver:
      approvals.length === 0
        ? null
        : {
            resolve: (request) =>
              playResolver(approvals, request, (context) => identify("jcs-sha256", context)),
          },
    ...(redacted.length === 0
      ? {}
      : {
          redactForApproval: (context) =>
            redacted.reduce((one, path) => applyTransform(one, { path, value: "[redacted]" }), context),
        }),
    onRecord: (record) => records.push(record),
  });
  const hooks = createHookRegistry();
  host.attach(hooks);
  const pipeline = createToolPipeline({
    lifecycle: createLifecycle(hooks, null),
    gate: openGate,
    tools: (scenario.tools ?? []).map((tool) => toTool(tool, invocations)),
  });

  const finalOutput = await loop();
  await host.shutdown(finalOutput.blocked ? "error" : "completed");
  return {
    outcome: finalOutput.blocked ? "blocked" : "completed",
    finalOutput: finalOutput.blocked ? null : finalOutput.content,
    toolInvocations: invocations,
    records,
    shown,
  };

  async function loop(): Promise<
    { readonly blocked: true } | { readonly blocked: false; readonly content: Json }
  > {
    const blocked = { blocked: true } as const;
    const names = (scenario.tools ?? []).map(({ name }) => name).sort();
    if (!(await host.startup(names)).proceeds) return blocked;
    const asked = await host.input(scenario.input.content, scenario.input.role);
    if (!asked.proceeds) return blocked;
    const { content, role } = asked.target as { content: Json; role: string };
    let messages: readonly JsonObject[] = [{ role, content }];
    for (const { respond } of scenario.model_script ?? []) {
      const before = await host.beforeModel("mock", messages);
      if (!before.proceeds) return blocked;
      messages = before.target as readonly JsonObject[];
      const after: Emitted = await host.afterModel("mock", { ...respond });
      if (!after.proceeds) return blocked;
      const response = after.target as unknown as ModelResponse;
      if (response.tool_calls.length === 0) {
        const out = await host.output(response.content);
        return out.proceeds
          ? { blocked: false, content: (out.target as { content: Json }).content }
          : blocked;
      }
      for (const { id, name, args } of response.tool_calls) {
        const outcome = await pipeline.run({ id, tool: name, input: args, sessionId: vector.id });
        messages = [
          ...messages,
          { role: "tool", content: outcome.status === "succeeded" ? outcome.output : outcome.text },
        ];
      }
      messages = [...messages, { role: "assistant", content: response.content ?? "" }];
    }
    return { blocked: false, content: null };
  }
};
