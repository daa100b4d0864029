import { readdirSync, readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import type { Json, JsonObject } from "../../services/adapters/sdk/sdk.ts";
import { projectDir } from "./stack.ts";

/** Where the public conformance data lies, as it was published. */
export const agentHooksCorpus = `${projectDir}/test/corpus/agent-hooks-0.1`;

interface ScriptRule {
  readonly at?: string;
  readonly match?: Readonly<Record<string, Json>>;
  readonly fault?: "raise" | "malformed_verdict" | "mutate";
  readonly return?: JsonObject;
}
interface ApprovalRule {
  readonly match?: Readonly<Record<string, Json>>;
  readonly resolve: {
    readonly outcome?: string;
    readonly verdict?: JsonObject;
    readonly fault?: "raise";
    readonly identity_override?: string;
    readonly echo_recomputed?: boolean;
  };
}
export interface VectorTool {
  readonly name: string;
  readonly behavior: readonly {
    readonly when_args?: JsonObject;
    readonly return: Json;
    readonly is_error?: boolean;
  }[];
}
interface ExpectedInterception {
  readonly interception_point: string;
  readonly context?: Readonly<Record<string, Json>>;
  readonly context_must_contain?: readonly string[];
  readonly context_must_not_contain?: readonly string[];
}
interface ExpectedRecord {
  readonly interception_point: string;
  readonly assert?: Readonly<Record<string, Json>>;
  readonly present?: readonly string[];
  readonly absent?: readonly string[];
}
/** One vector, as far as a host that buffers its output can run it. */
export interface Vector {
  readonly id: string;
  readonly title: string;
  readonly mode?: "enforce" | "evaluate_only";
  readonly capabilities?: readonly string[];
  readonly part?: string;
  readonly composition?: { readonly profile: string; readonly on_approval?: "stop" | "resume" };
  readonly identity_provider?: string | null;
  readonly redact_for_approval?: readonly string[];
  readonly scenario: {
    readonly input: { readonly content: Json; readonly role: "user" | "system" | "external" };
    readonly tools?: readonly VectorTool[];
    readonly model_script?: readonly { readonly respond: ModelResponse }[];
  };
  readonly interceptor_script?: readonly ScriptRule[];
  readonly interceptor_scripts?: readonly (readonly ScriptRule[])[];
  readonly approval_script?: readonly ApprovalRule[];
  readonly expect: {
    readonly sequence_strict?: boolean;
    readonly interceptions: readonly ExpectedInterception[];
    readonly interceptions_absent?: readonly string[];
    readonly records?: readonly ExpectedRecord[];
    readonly tool_invocations?: readonly Json[];
    readonly tool_not_invoked?: readonly string[];
    readonly final_output?: Json;
    readonly run_outcome: string;
    readonly run_outcome_by_posture?: { readonly outcomes: { readonly continue: string } };
    readonly identities_equal?: boolean;
  };
}
export interface ModelResponse {
  readonly content: Json;
  readonly tool_calls: readonly { readonly id: string; readonly name: string; readonly args: JsonObject }[];
  readonly finish_reason: string;
}
/** What a host did with a vector. */
export interface VectorRun {
  readonly outcome: "completed" | "blocked";
  readonly finalOutput: Json;
  readonly toolInvocations: readonly { readonly name: string; readonly args: Json }[];
  readonly records: readonly JsonObject[];
  /** Contexts as the first interceptor was shown them. */
  readonly shown: readonly JsonObject[];
}

/** All published vectors by name of file. Numbers beyond 2^53 are rounded here, as in any JavaScript: they are not declared. */
export const readVectors = (): readonly Vector[] =>
  readdirSync(`${agentHooksCorpus}/vectors`)
    .sort()
    .map((name) => JSON.parse(readFileSync(`${agentHooksCorpus}/vectors/${name}`, "utf8")) as Vector);

/** The value at a path such as `a.b[0].c`; undefined: there is none. */
const at = (root: Json, path: string): Json | undefined => {
  let value: unknown = root;
  for (const [, member, index] of path.matchAll(/([^.[\]]+)|\[(\d+)\]/g)) {
    const key = member ?? index ?? "";
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as Record<string, unknown>)[key];
  }
  return value as Json | undefined;
};
const holds = (context: JsonObject, match: Readonly<Record<string, Json>> = {}): boolean =>
  Object.entries(match).every(([path, want]) => isDeepStrictEqual(at(context, path), want));

/** What a scripted interceptor says of a context; it may throw, and may spoil what it was given. */
export const playInterceptor = (rules: readonly ScriptRule[], context: JsonObject): unknown => {
  const rule = rules.find((one) => one.at === context["interception_point"] && holds(context, one.match));
  switch (rule?.fault) {
    case "raise":
      throw new Error("scripted fault");
    case "malformed_verdict":
      return { decision: "transform" };
    case "mutate": {
      const spoilt = context as Record<string, unknown>;
      spoilt["target"] = "TAMPERED";
      (spoilt["tool_call"] as Record<string, unknown>)["args"] = { tampered: true };
      return { decision: "allow", reason: "ctk:mutated" };
    }
    case undefined:
      return rule?.return ?? { decision: "allow" };
  }
};

/** What a scripted resolver says of a request. */
export const playResolver = (
  rules: readonly ApprovalRule[],
  request: { readonly context: JsonObject; readonly context_identity: string | null },
  identityOf: (context: JsonObject) => string | null,
): unknown => {
  const rule = rules.find((one) => holds(request.context, one.match));
  if (rule === undefined) return { outcome: "unresolved", context_identity: request.context_identity };
  const { resolve } = rule;
  if (resolve.fault === "raise") throw new Error("scripted fault");
  const identity = resolve.echo_recomputed === true ? identityOf(request.context) : request.context_identity;
  return {
    outcome: resolve.outcome,
    context_identity: resolve.identity_override ?? identity,
    ...(resolve.verdict === undefined ? {} : { verdict: resolve.verdict }),
  };
};

/** Everything in which a run differs from what its vector expects. */
export const findDifferences = ({ expect }: Vector, run: VectorRun): readonly string[] => {
  const found: string[] = [];
  const points = run.shown.map((context) => context["interception_point"]);
  const wanted = expect.interceptions.map((one) => one.interception_point);
  const isStrict = expect.sequence_strict ?? true;
  if (isStrict && !isDeepStrictEqual(points, wanted))
    return [`points: ${JSON.stringify(points)}, and not ${JSON.stringify(wanted)}`];
  let next = 0;
  for (const one of expect.interceptions) {
    while (next < points.length && points[next] !== one.interception_point) next += 1;
    const context = run.shown[next];
    if (context === undefined) return [...found, `${one.interception_point} is missing`];
    next += 1;
    for (const [path, want] of Object.entries(one.context ?? {}))
      if (!isDeepStrictEqual(at(context, path), want))
        found.push(
          `${one.interception_point} ${path}: ${JSON.stringify(at(context, path))}, and not ${JSON.stringify(want)}`,
        );
    const text = JSON.stringify(context);
    for (const part of one.context_must_contain ?? [])
      if (!text.includes(part)) found.push(`${one.interception_point} lacks ${part}`);
    for (const part of one.context_must_not_contain ?? [])
      if (text.includes(part)) found.push(`${one.interception_point} shows ${part}`);
  }
  for (const point of expect.interceptions_absent ?? [])
    if (points.includes(point)) found.push(`${point} was emitted`);
  const sequences = run.shown.map((context) => context["sequence"] as number);
  if (sequences.some((value, index) => index > 0 && value <= (sequences[index - 1] ?? -1)))
    found.push(`sequence: ${JSON.stringify(sequences)}`);

  const outcome = expect.run_outcome_by_posture?.outcomes.continue ?? expect.run_outcome;
  if (run.outcome !== outcome) found.push(`outcome: ${run.outcome}, and not ${outcome}`);
  if (expect.final_output !== undefined && !isDeepStrictEqual(run.finalOutput, expect.final_output))
    found.push(`final output: ${JSON.stringify(run.finalOutput)}`);
  if (
    expect.tool_invocations !== undefined &&
    !isDeepStrictEqual(run.toolInvocations, expect.tool_invocations)
  )
    found.push(`tools: ${JSON.stringify(run.toolInvocations)}`);
  for (const name of expect.tool_not_invoked ?? [])
    if (run.toolInvocations.some((one) => one.name === name)) found.push(`${name} ran`);

  let record = 0;
  for (const one of expect.records ?? []) {
    while (
      record < run.records.length &&
      run.records[record]?.["interception_point"] !== one.interception_point
    )
      record += 1;
    const made = run.records[record];
    if (made === undefined) return [...found, `no record of ${one.interception_point}`];
    record += 1;
    for (const [path, want] of Object.entries(one.assert ?? {}))
      if (!isDeepStrictEqual(at(made, path), want))
        found.push(`record ${path}: ${JSON.stringify(at(made, path))}, and not ${JSON.stringify(want)}`);
    for (const path of one.present ?? [])
      if (at(made, path) === undefined) found.push(`record lacks ${path}`);
    for (const path of one.absent ?? []) if (at(made, path) !== undefined) found.push(`record has ${path}`);
  }
  if (expect.identities_equal !== undefined) {
    const areEqual = run.records.every((one) => one["input_identity"] === one["enforced_identity"]);
    if (areEqual !== expect.identities_equal) found.push(`identities are ${areEqual ? "" : "not "}equal`);
  }
  return found;
};
